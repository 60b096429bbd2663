// The memory that the recorder fills: attaching to it, and taking full chunks from it in order.
//
// Nothing in it is trusted further than its bounds: a program with a wild pointer can write there too.
#pragma once

#include <sched.h>

#include <atomic>
#include <deque>
#include <map>
#include <thread>

#include "trace/raw.h"
#include "trace/writer.h"
#include "tracer/launch/collect/translate.h"

namespace stem::collect {

class Shared {
 public:
  // Throws UserError if the descriptor is not such a memory. `life`: see STEM_RAW_LIFE_ENV, -1 for none.
  Shared(int fd, int life);
  ~Shared();
  Shared(const Shared&) = delete;

  // Feeds all records until the program is at its end.
  void drain(Translator& translator, trace::Writer& writer);

  void ready();   // the collector is there
  void failed();  // it cannot write any more
  void complete();

  uint32_t producer() const { return control_->producer_pid; }

 private:
  // One thread's records in parallel recording.
  struct Stream {
    std::deque<uint32_t> chunks;
    uint64_t next_order = 0;
    uint32_t at = 0;          // in the first chunk
    bool has_ticket = false;
    uint64_t ticket = 0;
  };

  const stem_rec* chunk(uint32_t i) const;
  uint32_t filled(uint32_t i) const;  // records in a chunk so far
  bool ending() const;
  void release(uint32_t i, uint32_t enough);
  void wait(uint32_t seen, int milliseconds);
  void wake_producer();
  uint32_t find(uint32_t state, uint64_t order) const;

  void keep_off();

  void drain_serial(Translator& translator, trace::Writer& writer);
  void drain_parallel(Translator& translator, trace::Writer& writer);
  void take_chunks(std::map<uint32_t, Stream>& streams);
  const stem_rec* peek(Stream& stream);
  bool feed_untimed(uint32_t thread, Stream& stream, Translator& translator);
  bool feed_ticketed(uint32_t thread, Stream& stream, Translator& translator);

  unsigned char* memory_ = nullptr;
  stem_hot* hot_ = nullptr;
  stem_control* control_ = nullptr;
  uint64_t base_ = 0;
  std::atomic<bool> gone_{false};
  uint64_t taken_ = 0;  // bit i: chunk i is in a stream's queue
  uint32_t released_ = 0;  // chunks that the recorder was not told of
  cpu_set_t kept_off_{};  // the processor of the recorded program, once it stays on one
  std::thread watcher_;
};

}  // namespace stem::collect
