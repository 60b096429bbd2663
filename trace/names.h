// The tables of a trace, whether it is in memory or being read: for code that works on either.
#pragma once

#include <optional>
#include <string>

#include "trace/event.h"
#include "trace/reader.h"

namespace stem::trace {

class Names {
 public:
  virtual ~Names() = default;
  virtual const Site& site(SiteId id) const = 0;
  virtual const Thread& thread(ThreadId id) const = 0;
  virtual size_t thread_count() const = 0;
  virtual const std::string& variable(uint32_t id) const = 0;  // "" for kNone
  virtual const std::vector<Input>& inputs() const = 0;
  virtual Object object(uint32_t id) const = 0;                // without a name for kNone
  // What the byte at `offset` of an object starts with, if that is known.
  virtual std::optional<uint8_t> initial(uint32_t object, uint64_t offset) const = 0;
};

class TraceNames : public Names {
 public:
  explicit TraceNames(const Trace& trace) : trace_(trace) {}
  const Site& site(SiteId id) const override { return trace_.sites[id < trace_.sites.size() ? id : 0]; }
  const Thread& thread(ThreadId id) const override;
  size_t thread_count() const override { return trace_.threads.size(); }
  const std::string& variable(uint32_t id) const override;
  const std::vector<Input>& inputs() const override { return trace_.inputs; }
  Object object(uint32_t id) const override { return id < trace_.objects.size() ? trace_.objects[id] : Object(); }
  std::optional<uint8_t> initial(uint32_t object, uint64_t offset) const override;

 private:
  const Trace& trace_;
};

class ReaderNames : public Names {
 public:
  explicit ReaderNames(const Reader& reader) : reader_(reader) {}
  const Site& site(SiteId id) const override { return reader_.sites()[id < reader_.sites().size() ? id : 0]; }
  const Thread& thread(ThreadId id) const override;
  size_t thread_count() const override { return reader_.threads().size(); }
  const std::string& variable(uint32_t id) const override;
  const std::vector<Input>& inputs() const override { return reader_.inputs(); }
  Object object(uint32_t id) const override { return reader_.object(id); }
  std::optional<uint8_t> initial(uint32_t object, uint64_t offset) const override;

 private:
  const Reader& reader_;
};

// "q.mutex", "x", "heap(make:12).next": what an event is about, as people know it; "" if it is about nothing.
std::string subject(const Event& event, const Names& names);

}  // namespace stem::trace
