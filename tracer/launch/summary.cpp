#include "tracer/launch/summary.h"

#include "trace/reader.h"

namespace stem::launch {

namespace {

Summary read(const std::string& path, bool items) {
  trace::Reader::Options options;
  options.keep_nondets = false;
  options.items = items;
  trace::Reader reader(path, options);
  while (reader.next() != trace::Reader::Item::End) continue;
  Summary summary;
  summary.events = reader.recovery().events;
  summary.names.meta = reader.meta();
  summary.names.sites = reader.sites();
  summary.names.threads = reader.threads();
  summary.names.inputs = reader.inputs();
  summary.outcome = summary.names.outcome = reader.outcome();
  summary.code = summary.names.exit_code = reader.exit_code();
  summary.whole = reader.recovery().complete;
  summary.messages = reader.messages();
  if (!summary.messages.empty())
    for (uint32_t id = 0; id < reader.object_count(); ++id) summary.names.objects.push_back(reader.object(id));
  return summary;
}

}  // namespace

// Events are not decoded for it, which would take about as long as recording them; only a trace without its end needs
// that.
Summary summarize(const std::string& path) {
  Summary summary = read(path, false);
  return summary.whole ? summary : read(path, true);
}

}  // namespace stem::launch
