#include "tracer/launch/summary.h"

#include "trace/reader.h"

namespace stem::launch {

Summary summarize(const std::string& path) {
  trace::Reader::Options options;
  options.keep_nondets = false;
  trace::Reader reader(path, options);
  Summary summary;
  for (trace::Reader::Item item; (item = reader.next()) != trace::Reader::Item::End;)
    if (item == trace::Reader::Item::Event && trace::is_visible(reader.event().kind)) ++summary.events;
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

}  // namespace stem::launch
