// φpo, third part: condition variables. A wait is Wait (release and block), Wake, Lock.
//
// A Wake that was not recorded as timed out or spurious needs a broadcast between its Wait and itself, or a signal there
// that goes to it; m_s_k says that signal s goes to wake k, and a signal goes to at most one. A signal may go to nobody:
// a waiter whose Wake does not come before r does no harm. Who was woken before the window began stays so.
#include "encoder/formula.h"

namespace stem::encoder {

void add_conditions(Formula& f) {
  const auto signals = f.by_place({Kind::Signal});
  const auto broadcasts = f.by_place({Kind::Broadcast});
  std::map<uint32_t, std::vector<z3::expr>> goes_to;  // by signal

  for (const auto& thread : f.threads)
    for (size_t i = 1; i < thread.size(); ++i) {
      const uint32_t wait = thread[i - 1], wake = thread[i];
      const Event& event = f.event(wake);
      if (event.kind != Kind::Wake || event.flags & (trace::kTimeout | trace::kSpurious)) continue;
      if (f.past(wait) && f.start.woken.count(event.thread)) continue;
      std::vector<z3::expr> options;
      const auto between = [&](uint32_t e) { return f.all({f.before(wait, e), f.before(e, wake)}); };
      if (auto it = signals.find(place(f.event(wait))); it != signals.end())
        for (uint32_t signal : it->second) {
          const z3::expr window = between(signal);
          if (window.is_false()) continue;
          const z3::expr match =
              f.z3.bool_const(("m_" + std::to_string(signal) + "_" + std::to_string(wake)).c_str());
          goes_to[signal].push_back(match);
          options.push_back(match && window);
        }
      if (auto it = broadcasts.find(place(f.event(wait))); it != broadcasts.end())
        for (uint32_t broadcast : it->second) options.push_back(between(broadcast));
      f.require_if_executed(wake, f.any(options));
    }

  for (const auto& [signal, matches] : goes_to)
    for (size_t i = 0; i < matches.size(); ++i)
      for (size_t j = i + 1; j < matches.size(); ++j) f.require(!matches[i] || !matches[j]);
}

}  // namespace stem::encoder
