#include "trace/names.h"

namespace stem::trace {

namespace {
const Thread kNoThread{"an unknown thread", kNone, ""};
const std::string kNoName;
}  // namespace

const Thread& TraceNames::thread(ThreadId id) const { return id < trace_.threads.size() ? trace_.threads[id] : kNoThread; }
const Thread& ReaderNames::thread(ThreadId id) const { return id < reader_.threads().size() ? reader_.threads()[id] : kNoThread; }

const std::string& TraceNames::variable(uint32_t id) const { return id < trace_.variables.size() ? trace_.variables[id] : kNoName; }
const std::string& ReaderNames::variable(uint32_t id) const { return id < reader_.variables().size() ? reader_.variables()[id] : kNoName; }

std::optional<uint8_t> TraceNames::initial(uint32_t object, uint64_t offset) const {
  if (object >= trace_.objects.size()) return std::nullopt;
  const Object& o = trace_.objects[object];
  if (offset < o.initial.size()) return o.initial[offset];
  if (o.zeroed && offset < o.size) return uint8_t{0};
  return std::nullopt;
}

std::optional<uint8_t> ReaderNames::initial(uint32_t object, uint64_t offset) const {
  const ObjectStore::Entry* o = reader_.object_entry(object);
  if (!o) return std::nullopt;
  if (offset < o->initial.size()) return o->initial[offset];
  if (o->zeroed && offset < o->size) return uint8_t{0};
  return std::nullopt;
}

std::string subject(const Event& event, const Names& names) {
  const std::string& variable = names.variable(event.variable);
  if (!variable.empty()) return variable;
  if (event.object == kNone) return event.addr ? "memory without a name" : "";
  std::string name = names.object(event.object).name;
  return name.empty() ? "memory without a name" : name;
}

}  // namespace stem::trace
