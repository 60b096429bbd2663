// φpo, fourth part: semaphores, barriers, once, and the initialisation of what has one.
#include <cerrno>

#include "encoder/formula.h"

namespace stem::encoder {

namespace {

z3::expr one_if(Formula& f, const z3::expr& condition) {
  return z3::ite(condition, f.z3.int_val(1), f.z3.int_val(0));
}

}  // namespace

// The count at an event: initial, plus posts before it, minus waits before it. Initialisations keep their place among all
// uses, so each starts a life of its own with its count. Two uses never tie, or both could take the last unit.
void add_semaphores(Formula& f) {
  for (const auto& [semaphore, uses] : f.by_place({Kind::SemInit, Kind::SemPost, Kind::SemWait, Kind::SemFail})) {
    std::vector<uint32_t> life;
    int64_t initial = f.start.count(semaphore);
    const auto finish_life = [&] {
      z3::expr_vector positions(f.z3);
      for (uint32_t e : life) positions.push_back(f.position(e));
      if (life.size() > 1) f.require(z3::distinct(positions));
      for (uint32_t e : life) {
        const Event& event = f.event(e);
        const bool empty = event.kind == Kind::SemFail && (event.value == EAGAIN || event.value == ETIMEDOUT);
        if (event.kind != Kind::SemWait && !empty) continue;
        z3::expr sum = f.z3.int_val(initial);
        for (uint32_t other : life) {
          if (other == e) continue;
          if (f.event(other).kind == Kind::SemPost) sum = sum + one_if(f, f.before(other, e));
          if (f.event(other).kind == Kind::SemWait) sum = sum - one_if(f, f.before(other, e));
        }
        f.require_if_executed(e, empty ? sum == 0 : sum > 0);
      }
      life.clear();
    };
    for (uint32_t e : uses) {
      if (f.event(e).kind == Kind::SemInit) {
        finish_life();
        initial = static_cast<int64_t>(f.event(e).value);
      } else {
        life.push_back(e);
      }
    }
    finish_life();
  }
}

// An arrival keeps its generation: all arrivals of one come before its departures and before those of the next. The thread
// that was told to be the serial one came last.
void add_barrier_order(Formula& f) {
  for (const auto& [barrier, uses] : f.by_place({Kind::BarrierInit, Kind::BarrierArrive, Kind::BarrierLeave})) {
    std::map<uint64_t, std::vector<uint32_t>> arrivals, leaves;  // by generation, since the last initialisation
    const auto finish_life = [&] {
      const std::vector<uint32_t>* previous = nullptr;
      for (const auto& [generation, arriving] : arrivals) {
        uint32_t serial = trace::kNone;  // a thread
        for (uint32_t leave : leaves[generation]) {
          for (uint32_t arrive : arriving) f.always_before(arrive, leave);
          if (f.event(leave).flags & trace::kSerial) serial = f.event(leave).thread;
        }
        for (uint32_t arrive : arriving) {
          if (previous)
            for (uint32_t earlier : *previous) f.always_before(earlier, arrive);
          for (uint32_t last : arriving)
            if (f.event(last).thread == serial && arrive != last) f.always_before(arrive, last);
        }
        previous = &arriving;
      }
      arrivals.clear(), leaves.clear();
    };
    for (uint32_t e : uses) {
      if (f.event(e).kind == Kind::BarrierInit) finish_life();
      if (f.event(e).kind == Kind::BarrierArrive) arrivals[f.event(e).value].push_back(e);
      if (f.event(e).kind == Kind::BarrierLeave) leaves[f.event(e).value].push_back(e);
    }
    finish_life();
  }
}

void add_once_order(Formula& f) {
  for (const auto& [once, uses] : f.by_place({Kind::OnceBegin, Kind::OnceEnd, Kind::OncePass})) {
    uint32_t begin = trace::kNone;
    std::vector<uint32_t> ends;
    for (uint32_t e : uses) {
      if (f.event(e).kind == Kind::OncePass)
        for (uint32_t end : ends) f.always_before(end, e);
      if (f.event(e).kind == Kind::OnceEnd) ends.push_back(e);
      if (f.event(e).kind != Kind::OnceBegin) continue;
      if (begin != trace::kNone) f.always_before(begin, e);
      begin = e;
    }
  }
}

void add_init_order(Formula& f) {
  const auto keep = [&](const std::map<Place, std::vector<uint32_t>>& by_place, Kind init) {
    for (const auto& [object, uses] : by_place)
      for (size_t i = 0; i < uses.size(); ++i)
        for (size_t j = i + 1; j < uses.size(); ++j)
          if (f.event(uses[i]).kind == init || f.event(uses[j]).kind == init) f.always_before(uses[i], uses[j]);
  };
  keep(f.by_place({Kind::SemInit, Kind::SemPost, Kind::SemWait, Kind::SemFail}), Kind::SemInit);
  keep(f.by_place({Kind::BarrierInit, Kind::BarrierArrive, Kind::BarrierLeave}), Kind::BarrierInit);
}

}  // namespace stem::encoder
