// A recorder for tests: appends raw records to a shared memory as the runtime does, serialised or parallel.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "trace/raw.h"

namespace stem::collect {

// A stream of records in memory, with the shapes that recorders write.
class Stream {
 public:
  std::vector<stem_rec> records;

  void raw(unsigned kind, unsigned aux, uint64_t addr, uint64_t value, uint32_t expr = 0, uint32_t site = 0) {
    records.push_back({stem_head(kind, aux, addr), value, expr, site});
  }
  void blob(unsigned type, const std::string& bytes) {
    raw(STEM_RAW_Blob, type, 0, bytes.size());
    for (size_t at = 0; at < bytes.size(); at += sizeof(stem_rec)) {
      stem_rec r{};
      std::memcpy(&r, bytes.data() + at, std::min(sizeof r, bytes.size() - at));
      records.push_back(r);
    }
  }
  void thread(uint32_t index, uint32_t parent, const std::string& path, const std::string& start) {
    raw(STEM_RAW_Thread, 0, 0, index, parent);
    blob(STEM_BLOB_THREAD_PATH, path);
    blob(STEM_BLOB_THREAD_START, start);
  }
  void begin() {
    blob(STEM_BLOB_META, R"({"recorder":"compiled","program":"/bin/test","argv":["test"],"cwd":"/","mode":"default","seed":7,"semantics":true})");
    thread(0, UINT32_MAX, "main", "main");
    raw(STEM_KIND_Start, 0, 0, 0);
  }
  void exit(int code, unsigned outcome = 0) {
    raw(STEM_KIND_Exit, 0, 0, static_cast<uint64_t>(code));
    raw(STEM_RAW_Value2, 0, 0, outcome);
  }
};

class Memory {
 public:
  int fd;
  Memory(bool parallel = false) {
    fd = memfd_create("stem", 0);
    if (ftruncate(fd, static_cast<off_t>(STEM_RAW_SIZE)) != 0) std::abort();
    base_ = static_cast<char*>(mmap(nullptr, STEM_RAW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    hot = reinterpret_cast<stem_hot*>(base_);
    control = reinterpret_cast<stem_control*>(base_ + STEM_PAGE);
    control->version = STEM_RAW_VERSION;
    control->base = reinterpret_cast<uint64_t>(base_);
    control->producer_pid = static_cast<uint32_t>(getpid());
    control->parallel = parallel;
    control->magic = STEM_RAW_MAGIC;
  }
  ~Memory() {
    munmap(base_, STEM_RAW_SIZE);
    close(fd);
  }
  stem_hot* hot;
  stem_control* control;

  stem_rec* chunk(uint32_t i) { return reinterpret_cast<stem_rec*>(base_ + 2 * STEM_PAGE + uint64_t{i} * STEM_CHUNK_BYTES); }

  // Writes the records into chunks of `each`; waits for free ones. The last chunk stays FILLING unless `close`.
  void fill(uint32_t stream, const std::vector<stem_rec>& records, bool close, uint32_t each = STEM_CHUNK_BYTES / sizeof(stem_rec)) {
    uint64_t order = 0;
    for (size_t at = 0; at < records.size() || order == 0; ++order) {
      uint32_t i = 0;
      while (__atomic_load_n(&control->chunks[i].state, __ATOMIC_ACQUIRE) != STEM_CHUNK_FREE) {
        if (__atomic_load_n(&control->failed, __ATOMIC_ACQUIRE)) return;
        if (++i == STEM_CHUNKS) i = 0, usleep(100);
      }
      auto n = static_cast<uint32_t>(std::min<size_t>(each, records.size() - at));
      control->chunks[i].stream = stream;
      control->chunks[i].order = order;
      std::memcpy(chunk(i), records.data() + at, n * sizeof(stem_rec));
      at += n;
      hot->cursor = chunk(i) + n;
      control->cursors[i] = reinterpret_cast<uint64_t>(chunk(i) + n);
      bool full = close || at < records.size();
      control->chunks[i].count = full ? n : 0;
      __atomic_store_n(&control->chunks[i].state, full ? STEM_CHUNK_FULL : STEM_CHUNK_FILLING, __ATOMIC_RELEASE);
      __atomic_fetch_add(&control->wake_collector, 1, __ATOMIC_RELEASE);
    }
  }

 private:
  char* base_;
};

}  // namespace stem::collect
