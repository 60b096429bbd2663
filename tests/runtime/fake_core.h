// Stands in for the runtime's core when its models of library functions are tested alone: no threads, no scheduler, no trace;
// what a model records is kept in a list.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum fake_what { FAKE_READ, FAKE_WRITE, FAKE_PIN, FAKE_BRANCH, FAKE_ASSERT, FAKE_INPUT, FAKE_NONDET, FAKE_YIELD, FAKE_OUTSIDE,
                 FAKE_ALLOC, FAKE_FREE, FAKE_MESSAGE };

struct fake_event {
  enum fake_what what;
  uint64_t addr;
  uint64_t value;
  uint32_t size;
  uint32_t id;    // of a read: its leaf; of what was written or decided
  int pinned;
  char name[512];  // of an input, an answer, or a message
  uint8_t bytes[4096];
  uint32_t bytes_size;
};

struct fake_node {
  uint32_t op, width, from_width, low;
  uint32_t a, b, c;          // ids, 0: the constant
  uint64_t ka, kb, kc;
};

extern struct fake_event fake_events[];
extern uint32_t fake_event_count;
extern struct fake_node fake_nodes[];
extern uint32_t fake_node_count;  // ids from 1

void fake_begin(void);  // recording on, lists empty
void fake_end(void);
void fake_call(const void* callee, const void* site);  // as instrumented code leaves it before a call
void fake_argument(int index, uint32_t id);
uint32_t fake_result(const void* callee);              // id that the call left
void fake_plan_clear(void);
void fake_plan_input(const char* name, const void* bytes, size_t size);
void fake_plan_option(const char* text);
void fake_plan_feed(const char* what, const void* bytes, size_t size);  // bytes with their header of 12
uint32_t fake_input(unsigned width);                                    // a leaf for arguments: node of Op::Input

#ifdef __cplusplus
}
#endif
