#include "trace/value_store.h"

#include "trace/eval.h"

#include <unistd.h>

namespace stem::trace {

void ValueStore::new_page() {
  pages_.push_back(std::make_unique<Page>());
  if (pages_.size() - first_in_memory_ <= most_) return;
  if (!file_ && !file_failed_) {
    file_ = std::tmpfile();
    file_failed_ = !file_;
  }
  uint64_t page = first_in_memory_++;
  if (file_) {
    ssize_t n = ::pwrite(::fileno(file_), pages_[page].get(), sizeof(Page), static_cast<off_t>(page * sizeof(Page)));
    if (n != static_cast<ssize_t>(sizeof(Page))) {  // no room: what is older is lost, and says so
      std::fclose(file_);
      file_ = nullptr;
      file_failed_ = true;
    }
  }
  pages_[page].reset();
}

ValueStore::Value ValueStore::fetch(uint64_t page, uint64_t at) {
  for (auto i = fetched_.begin(); i != fetched_.end(); ++i) {
    if (i->first != page) continue;
    fetched_.splice(fetched_.begin(), fetched_, i);
    return fetched_.front().second->at[at];
  }
  if (!file_) return {};
  auto fresh = std::make_unique<Page>();
  if (::pread(::fileno(file_), fresh.get(), sizeof(Page), static_cast<off_t>(page * sizeof(Page))) != static_cast<ssize_t>(sizeof(Page))) return {};
  fetched_.emplace_front(page, std::move(fresh));
  if (fetched_.size() > 8) fetched_.pop_back();
  return fetched_.front().second->at[at];
}

ValueStore::Value ValueStore::apply(const Expr& e) {
  if (e.op == Op::Opaque) return {e.value & width_mask(e.width), e.width, Known};
  Value v[3];
  const ExprId operands[] = {e.a, e.b, e.c};
  State state = Known;
  for (int i = 0; i < 3; ++i) {
    if (!operands[i]) continue;
    v[i] = get(operands[i]);
    if (v[i].state != Known && state != Lost) state = v[i].state;
  }
  if (state != Known) return {0, e.width, state};
  return {trace::apply(e.op, e.width, v[0].value, v[1].value, v[2].value, v[0].width, v[1].width, e.value), e.width, Known};
}

}  // namespace stem::trace
