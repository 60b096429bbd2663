#include "tracer/launch/collect/shared.h"

#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>

#include "util/error.h"

namespace stem::collect {

namespace {

constexpr uint32_t kChunkRecords = STEM_CHUNK_BYTES / sizeof(stem_rec);
constexpr uint32_t kNoChunk = STEM_CHUNKS, kEnough = STEM_SERIAL_CHUNKS / 2;

uint32_t load(const uint32_t& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); }

void futex_wake(uint32_t* word) { ::syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0); }

}  // namespace

Shared::Shared(int fd, int life) {
  struct stat st;
  if (::fstat(fd, &st) != 0) user_error("stem-collect is started by recorded programs: descriptor {}: {}", fd, std::strerror(errno));
  if (static_cast<uint64_t>(st.st_size) < STEM_RAW_SIZE) user_error("stem-collect is started by recorded programs: descriptor {} is not a recorder's memory", fd);
  void* map = ::mmap(nullptr, STEM_RAW_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED) user_error("cannot map the recorder's memory: {}", std::strerror(errno));
  memory_ = static_cast<unsigned char*>(map);
  hot_ = reinterpret_cast<stem_hot*>(memory_);
  control_ = reinterpret_cast<stem_control*>(memory_ + STEM_PAGE);
  if (control_->magic != STEM_RAW_MAGIC) user_error("descriptor {} is not a recorder's memory", fd);
  if (control_->version != STEM_RAW_VERSION) {
    user_error("the program was built by another version of STEM (its records have version {}, this collector reads {}): build it again",
               control_->version, STEM_RAW_VERSION);
  }
  base_ = control_->base;
  if (life >= 0) {
    watcher_ = std::thread([this, life] {
      pollfd p{life, POLLIN, 0};
      while (::poll(&p, 1, -1) < 0 && errno == EINTR) {
      }
      gone_ = true;
      __atomic_fetch_add(&control_->wake_collector, 1, __ATOMIC_RELEASE);
      futex_wake(&control_->wake_collector);
    });
    watcher_.detach();  // the process ends before or after it, either is fine
  }
}

Shared::~Shared() = default;  // the watcher may still look at the memory

const stem_rec* Shared::chunk(uint32_t i) const {
  return reinterpret_cast<const stem_rec*>(memory_ + 2 * STEM_PAGE + static_cast<uint64_t>(i) * STEM_CHUNK_BYTES);
}

uint32_t Shared::filled(uint32_t i) const {
  const stem_chunk& c = control_->chunks[i];
  if (load(c.state) == STEM_CHUNK_FULL) return std::min(c.count, kChunkRecords);
  uint64_t cursor = control_->parallel ? __atomic_load_n(&control_->cursors[i], __ATOMIC_ACQUIRE)
                                       : reinterpret_cast<uint64_t>(__atomic_load_n(&hot_->cursor, __ATOMIC_ACQUIRE));
  uint64_t begin = base_ + 2 * STEM_PAGE + static_cast<uint64_t>(i) * STEM_CHUNK_BYTES;
  if (cursor < begin || cursor > begin + STEM_CHUNK_BYTES) return 0;
  return static_cast<uint32_t>((cursor - begin) / sizeof(stem_rec));
}

bool Shared::ending() const { return gone_ || load(control_->closing) != 0; }

void Shared::wake_producer() {
  __atomic_fetch_add(&control_->wake_producer, 1, __ATOMIC_RELEASE);
  futex_wake(&control_->wake_producer);
}

// A recorder that waits for room goes on when there is enough of it: waking it for every chunk would cost both sides more than the
// chunk does.
void Shared::release(uint32_t i, uint32_t enough) {
  __atomic_store_n(&control_->chunks[i].state, STEM_CHUNK_FREE, __ATOMIC_RELEASE);
  if (++released_ < enough) return;
  released_ = 0;
  wake_producer();
}

void Shared::wait(uint32_t seen, int milliseconds) {
  timespec timeout{milliseconds / 1000, (milliseconds % 1000) * 1000000L};
  ::syscall(SYS_futex, &control_->wake_collector, FUTEX_WAIT, seen, &timeout, nullptr, 0);
  // Without the pipe, or when a child of the program still holds it: is the program there at all?
  if (control_->producer_pid && ::kill(static_cast<pid_t>(control_->producer_pid), 0) != 0 && errno == ESRCH) gone_ = true;
}

uint32_t Shared::find(uint32_t state, uint64_t order) const {
  for (uint32_t i = 0; i < STEM_CHUNKS; ++i) {
    const stem_chunk& c = control_->chunks[i];
    if (load(c.state) == state && c.order == order) return i;
  }
  return kNoChunk;
}

void Shared::ready() { __atomic_store_n(&control_->collector_pid, static_cast<uint32_t>(::getpid()), __ATOMIC_RELEASE); }

void Shared::failed() {
  __atomic_store_n(&control_->failed, 1, __ATOMIC_RELEASE);
  wake_producer();
}

void Shared::complete() {
  __atomic_store_n(&control_->closing, 2, __ATOMIC_RELEASE);
  wake_producer();
}

void Shared::drain(Translator& translator, trace::Writer& writer) {
  if (control_->parallel) drain_parallel(translator, writer);
  else drain_serial(translator, writer);
}

// A recorder that runs its threads one at a time keeps them on one processor. The kernel likes to wake us on the same one, since
// that is where the wake-up comes from: then each of us only runs while the other does not.
void Shared::keep_off() {
  cpu_set_t theirs;
  if (::sched_getaffinity(static_cast<pid_t>(control_->producer_pid), sizeof theirs, &theirs) != 0 || CPU_COUNT(&theirs) != 1) return;
  if (CPU_EQUAL(&theirs, &kept_off_)) return;
  kept_off_ = theirs;
  cpu_set_t ours;
  CPU_ZERO(&ours);
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(i, &theirs)) CPU_SET(i, &ours);
  }
  ::sched_setaffinity(0, sizeof ours, &ours);  // refused where there is no other: we stay
}

void Shared::drain_serial(Translator& translator, trace::Writer& writer) {
  uint64_t order = 0;
  int idle = 0;
  while (true) {
    uint32_t seen = load(control_->wake_collector);
    bool last = ending();  // before looking: what is there then is all there is
    uint32_t i = find(STEM_CHUNK_FULL, order);
    if (i != kNoChunk) {
      keep_off();
      translator.records(chunk(i), chunk(i) + filled(i));
      release(i, kEnough);
      ++order;
      idle = 0;
      continue;
    }
    if (last) break;
    if (released_) {
      released_ = 0;
      wake_producer();
      continue;
    }
    wait(seen, 200);
    if (++idle == 5 && writer.next_event()) writer.flush();  // a program that waits: what it did so far survives us. Not before
                                                             // its first event: readers look for its description in the first block
  }
  uint32_t i = find(STEM_CHUNK_FILLING, order);
  if (i != kNoChunk) translator.records(chunk(i), chunk(i) + filled(i));
}

// --- parallel recording: every stream is in order; tickets tell how the streams interleave ------------------------------------

void Shared::take_chunks(std::map<uint32_t, Stream>& streams) {
  bool found = true;
  while (found) {
    found = false;
    for (uint32_t i = 0; i < STEM_CHUNKS; ++i) {
      if (taken_ >> i & 1 || load(control_->chunks[i].state) == STEM_CHUNK_FREE) continue;
      Stream& stream = streams[control_->chunks[i].stream];
      if (control_->chunks[i].order != stream.next_order) continue;
      ++stream.next_order;
      stream.chunks.push_back(i);
      taken_ |= 1ull << i;
      found = true;
    }
  }
}

// The stream's next record, if it is there.
const stem_rec* Shared::peek(Stream& stream) {
  while (!stream.chunks.empty()) {
    uint32_t i = stream.chunks.front();
    bool full = load(control_->chunks[i].state) == STEM_CHUNK_FULL;
    if (stream.at < filled(i)) return chunk(i) + stream.at;
    if (!full) return nullptr;
    stream.chunks.pop_front();
    stream.at = 0;
    taken_ &= ~(1ull << i);
    release(i, 1);
  }
  return nullptr;
}

// Everything up to the next ticket. True if there was anything.
bool Shared::feed_untimed(uint32_t thread, Stream& stream, Translator& translator) {
  bool any = false;
  translator.select(thread);
  while (!stream.has_ticket && !translator.broken()) {
    const stem_rec* r = peek(stream);
    if (!r) break;
    ++stream.at;
    any = true;
    if (!translator.in_blob() && (r->head >> 48 & 0xff) == STEM_RAW_Ticket) {
      stream.has_ticket = true;
      stream.ticket = r->value;
    } else {
      translator.records(r, r + 1);
    }
  }
  return any;
}

bool Shared::feed_ticketed(uint32_t thread, Stream& stream, Translator& translator) {
  const stem_rec* r = peek(stream);
  if (!r) return false;
  ++stream.at;
  stream.has_ticket = false;
  translator.select(thread);
  translator.records(r, r + 1);
  feed_untimed(thread, stream, translator);
  return true;
}

void Shared::drain_parallel(Translator& translator, trace::Writer& writer) {
  std::map<uint32_t, Stream> streams;
  uint64_t expected = 0;
  int stuck = 0, idle = 0;
  while (!translator.broken()) {
    uint32_t seen = load(control_->wake_collector);
    bool last = ending();
    take_chunks(streams);
    bool progress = false;
    Stream* first = nullptr;
    uint32_t first_thread = 0;
    for (auto& [thread, stream] : streams) {
      if (!stream.has_ticket) progress |= feed_untimed(thread, stream, translator);
      while (stream.has_ticket && stream.ticket <= expected) {
        uint64_t ticket = stream.ticket;
        if (!feed_ticketed(thread, stream, translator)) break;
        expected = std::max(expected, ticket + 1);
        progress = true;
        // A read-modify-write is one event: the rest of it is on its way.
        for (int spins = 0; translator.needs_more() && spins < 1000 && !ending(); ++spins) {
          take_chunks(streams);
          if (!feed_untimed(thread, stream, translator)) ::usleep(100);
        }
      }
      if (stream.has_ticket && (!first || stream.ticket < first->ticket) && peek(stream)) first = &stream, first_thread = thread;
    }
    if (progress) {
      stuck = idle = 0;
      continue;
    }
    // A ticket that was drawn and never used (its thread was killed): go on with the next one, at the end at once.
    if (first && (last || ++stuck > 300)) {
      expected = first->ticket + 1;
      feed_ticketed(first_thread, *first, translator);
      continue;
    }
    if (last) break;
    wait(seen, 1);
    if (!first && ++idle == 1000 && writer.next_event()) writer.flush();
  }
}

}  // namespace stem::collect
