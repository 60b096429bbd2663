// The program and its libraries: whose accesses are recorded, and which call of theirs led to where we are.
#include <string.h>

#include "tracer/pin/tool.h"

extern "C" {
#include "trace/code_key.h"
}

namespace stem_pin {

namespace {
Module modules[1024];
volatile uint32_t module_count;
}  // namespace

// Sites are recorded by the lower half of their addresses, and what a private frame wrote is known by that half only.
Module* module_at(ADDRINT address) {
  const uint32_t n = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = n; i-- > 0;)
    if (address - modules[i].begin < modules[i].end - modules[i].begin) return &modules[i];
  if (address >> 32) return 0;
  for (uint32_t i = n; i-- > 0;)
    if (static_cast<uint32_t>(address - modules[i].begin) < modules[i].end - modules[i].begin) return &modules[i];
  return 0;
}

// Called from Pin's callbacks, one at a time; the thread that runs announces it to the collector.
Module* add_module(const char* path, ADDRINT begin, ADDRINT end, ADDRINT bias) {
  if (module_count == sizeof modules / sizeof *modules) return 0;
  Module& m = modules[module_count];
  m.begin = begin;
  m.end = end;
  m.bias = bias;
  strncpy(m.path, path, sizeof m.path - 1);
  m.seen = !bin_is_system(path);
  __atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
  if (m.seen) attention = 1;
  return &m;
}

void announce() {
  attention = 0;
  for (uint32_t i = 0; i < __atomic_load_n(&module_count, __ATOMIC_ACQUIRE); i++) {
    Module& m = modules[i];
    if (!m.seen || m.announced) continue;
    m.announced = true;
    bin_module(m.path, m.bias, m.begin, m.end - m.begin);
  }
}

unsigned callers(const CONTEXT* context, ADDRINT return_address, ADDRINT* sites, unsigned most) {
  void* addresses[24];
  unsigned found = 0;
  Module* m = module_at(return_address - 1);
  if (m && m->seen) sites[found++] = return_address - 1;
  if (found == most) return found;
  const int n = PIN_Backtrace(context, addresses, 24);
  for (int i = 0; i < n && found < most; i++) {
    const ADDRINT site = reinterpret_cast<ADDRINT>(addresses[i]) - 1;
    if (found && site == sites[0]) continue;
    m = module_at(site);
    if (m && m->seen) sites[found++] = site;
  }
  return found;
}

ADDRINT site_of(const CONTEXT* context, ADDRINT return_address) {
  ADDRINT site = 0;
  return callers(context, return_address, &site, 1) ? site : 0;
}

}  // namespace stem_pin

using namespace stem_pin;

extern "C" {

uint64_t stem_host_key(uint64_t site) {
  Module* m = site ? module_at(site) : 0;
  if (!m) return 0;
  const uint64_t offset = static_cast<uint32_t>(site - m->begin) + (m->begin - m->bias);
  return stem_code_key(m->path, offset);
}

int stem_host_same_function(uint64_t site, uint64_t other) {
  Module *m = module_at(site), *n = module_at(other);
  if (!m || m != n) return 0;
  PIN_LockClient();
  RTN a = RTN_FindByAddress(m->begin + static_cast<uint32_t>(site - m->begin)),
      b = RTN_FindByAddress(m->begin + static_cast<uint32_t>(other - m->begin));
  const int same = RTN_Valid(a) && RTN_Valid(b) && RTN_Address(a) == RTN_Address(b);
  PIN_UnlockClient();
  return same;
}

}  // extern "C"
