// Writes a trace file as a run goes on: tables, expressions and events in the order of the run, in memory that does not
// grow with its length. Every full block is on its way to the disk; whatever happens then, the file is a readable prefix.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "trace/event.h"
#include "trace/model.h"
#include "trace/object_store.h"

namespace stem::trace {

// The file could not be written; it was cut back to its last whole block.
class WriteError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Writer {
 public:
  // Creates or replaces the file. Throws UserError if that is not possible.
  // Without compression a file is larger and can be taken apart by hand, or by a fuzzer.
  Writer(const std::string& path, const Meta& meta, bool compress = true);
  ~Writer();
  Writer(const Writer&) = delete;

  // Tables: each returns the index it got. What an event or expression refers to must have been added before.
  SiteId add_site(const Site& site);
  ThreadId add_thread(const Thread& thread);
  uint32_t add_object(const Object& object);
  uint32_t add_variable(const std::string& name);
  uint32_t add_input(const Input& input);
  uint32_t add_nondet(const Nondet& nondet);
  void add_message(const std::string& message);
  void set_meta(const Meta& meta);    // instead of what was known at the start
  void drop_object(uint32_t object);  // no later event refers to it: a reader may forget it

  ExprId add_expr(const Expr& expr);
  ExprId next_expr() const { return model_.next_expr(); }
  // If event.leaf is next_expr(), the event defines that expression: the Op::Read node of itself. Otherwise leaf is 0 or
  // an Op::Read node added before.
  uint64_t add_event(const Event& event);
  uint64_t next_event() const { return events_; }

  void flush();  // ends the block: what was added so far can be read after a kill
  void finish(Outcome outcome, int exit_code);

  uint64_t bytes() const { return bytes_; }
  uint64_t written_events() const { return written_events_; }  // that are in the file
  Shadow& shadow() { return model_.shadow(); }  // what memory holds, by the events so far
  const ObjectStore& objects() const { return objects_; }

 private:
  struct Encoder;
  void put_shape(uint32_t predicted, Shape shape, uint8_t& control, uint32_t& code);
  void switch_to(ThreadId thread);
  uint32_t string(const std::string& text);
  void item_done();
  void write_block(uint32_t type);
  void write_all(const void* data, size_t size);

  std::string path_;
  bool compress_;
  int fd_ = -1;
  uint64_t bytes_ = 0, events_ = 0, block_first_event_ = 0;
  uint64_t written_events_ = 0;
  uint32_t items_ = 0;
  uint32_t sites_ = 1, threads_ = 0, variables_ = 0, nondets_ = 0;
  uint64_t last_base_ = 0;
  uint32_t last_born_ = 0;
  std::vector<Input> inputs_;
  std::vector<uint32_t> drops_;
  std::unordered_map<std::string, uint32_t> strings_;
  std::unordered_map<uint32_t, uint64_t> ordinals_;  // of identities with the same beginning
  ObjectStore objects_;
  Model model_;
  std::unique_ptr<Encoder> encoder_;
};

// A whole trace; written beside `path` and renamed, so that a failure leaves what was there. Throws UserError if the trace
// refers to what is not in its tables.
void save(const Trace& trace, const std::string& path, bool compress = true);

}  // namespace stem::trace
