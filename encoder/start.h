// What a window begins with: the events before it have executed as recorded, and this is all of them that its formula
// needs beside memory and values (index.h). Linear in the events before; the encoder and the engine's machine find it each in
// its own way, and are compared.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "encoder/index.h"

namespace stem::encoder {

struct Start {
  Start(const Index& index, uint32_t first);

  std::vector<uint32_t> carried;  // acquisitions of what is still held, waits that have not ended; as recorded
  std::set<trace::ThreadId> woken;  // threads that wait, and to which a signal or a broadcast went
  int64_t count(Place semaphore) const;

 private:
  const Index& index_;
  std::map<Place, int64_t> counts_;  // of semaphores that were used
};

}  // namespace stem::encoder
