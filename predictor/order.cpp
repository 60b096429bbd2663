#include "predictor/order.h"

#include <algorithm>

namespace stem::predictor {

Window::Window(const Model& m, uint32_t begin, uint32_t end) : model(m), first(begin), last(end) {
  base.resize(model.threads);
  length.resize(model.threads);
  for (uint32_t t = 0; t < model.threads; ++t) {
    const auto& events = model.events_of[t];
    base[t] = static_cast<uint32_t>(std::lower_bound(events.begin(), events.end(), first) - events.begin());
    length[t] = static_cast<uint32_t>(std::lower_bound(events.begin(), events.end(), last) - events.begin()) - base[t];
  }
}

Order::Order(const Window& window) : window_(window), threads_(window.model.threads) {
  const size_t cells = size_t{window.last - window.first} * threads_;
  succ_.assign(cells, {kNever, 0});
  pred_.assign(cells, {-1, 0});
}

bool Order::add(uint32_t a, uint32_t b, Reasons why) {
  const uint32_t ta = window_.thread(a), tb = window_.thread(b);
  if (ta == tb) {
    if (window_.at(a) < window_.at(b)) return true;
    conflict_ = why;
    return false;
  }
  if (succ(a, tb).at <= window_.at(b)) return true;
  if (succ(b, ta).at <= window_.at(a)) {
    conflict_ = why | succ(b, ta).why;
    return false;
  }
  ++version_;
  for (uint32_t x = 0; x < threads_; ++x) {
    const Cell from = x == ta ? Cell{window_.at(a), 0} : pred(a, x);
    if (from.at < 0) continue;
    for (uint32_t y = 0; y < threads_; ++y) {
      if (y == x) continue;
      const Cell to = y == tb ? Cell{window_.at(b), 0} : succ(b, y);
      if (to.at == kNever) continue;
      const Reasons all = why | from.why | to.why;
      for (int32_t p = from.at; p >= 0; --p) {
        Cell& cell = succ_[(window_.event(x, p) - window_.first) * threads_ + y];
        if (cell.at <= to.at) break;
        set(cell, to.at, all);
      }
      for (int32_t q = to.at; q < static_cast<int32_t>(window_.length[y]); ++q) {
        Cell& cell = pred_[(window_.event(y, q) - window_.first) * threads_ + x];
        if (cell.at >= from.at) break;
        set(cell, from.at, all);
      }
    }
  }
  return true;
}

void Order::undo(size_t mark) {
  while (trail_.size() > mark) {
    *trail_.back().cell = trail_.back().old;
    trail_.pop_back();
  }
}

}  // namespace stem::predictor
