#include "trace/value_store.h"

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

}  // namespace stem::trace
