// Reads a trace file from its start, item by item, in memory that does not grow with its length:
//
//   Reader reader(path);
//   for (Reader::Item item; (item = reader.next()) != Reader::Item::End;) {
//     if (item == Reader::Item::Expr) use(reader.expr_id(), reader.expr());
//     else use(reader.event_index(), reader.event());
//   }
//
// Expressions come before the first event that refers to them, in the order of their ids; the leaf of a read comes just
// before the read. Tables grow as the file is read, and hold all that the current item refers to.
//
// A file that ends early or is damaged gives its readable prefix: next() says End, recovery() says why.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/event.h"
#include "trace/object_store.h"
#include "trace/rounds.h"

namespace stem::trace {

struct Recovery {
  bool complete = false;    // the whole run is here
  std::string why;          // where not complete: why reading stopped
  uint64_t bytes_used = 0;  // of the file
  uint64_t bytes_total = 0;
  uint64_t events = 0;  // read so far
};

class Reader {
 public:
  enum class Item { Expr, Event, End };
  struct Options {
    bool keep_nondets = true;  // false: the bytes of a nondet are only there until its block has been read
    bool verify = true;        // check checksums (a fuzzer does not)
    bool items = true;  // false: tables only, next() runs to the end at once; recovery().events is exact if complete
  };

  // Throws UserError: no such file, not a trace, another version.
  explicit Reader(const std::string& path, Options options);
  explicit Reader(const std::string& path) : Reader(path, Options()) {}
  Reader(const std::string& name, std::vector<uint8_t> bytes, Options options);  // a file in memory
  ~Reader();
  Reader(const Reader&) = delete;

  Item next();
  const Event& event() const { return event_; }
  uint64_t event_index() const { return recovery_.events - 1; }
  const Expr& expr() const { return expr_; }
  ExprId expr_id() const;

  const Meta& meta() const { return meta_; }
  const std::vector<Site>& sites() const { return sites_; }
  const std::vector<Thread>& threads() const { return threads_; }
  const std::vector<std::string>& variables() const { return variables_; }
  const std::vector<Input>& inputs() const { return inputs_; }
  const std::vector<Nondet>& nondets() const { return nondets_; }  // without keep_nondets: bytes of old ones are gone
  const std::vector<std::string>& messages() const { return messages_; }
  uint32_t object_count() const { return objects_.count(); }
  // An object that no later event refers to may be gone: then an object without a name.
  Object object(uint32_t id) const;
  const std::string& object_name(uint32_t id) const;
  const ObjectStore::Entry* object_entry(uint32_t id) const { return objects_.find(id); }

  // After End.
  Outcome outcome() const { return outcome_; }
  int exit_code() const { return exit_code_; }
  const Recovery& recovery() const { return recovery_; }
  const std::string& path() const { return path_; }
  uint64_t expr_count() const;  // read so far

 private:
  struct Decoder;
  void open_header();
  bool next_block();
  bool read_tables();
  bool table_record(uint8_t type);
  bool read_object();
  bool decode_item();
  bool decode_expr(uint32_t code, uint8_t control);
  bool decode_rounds(uint32_t code, uint8_t control);
  Item next_of_rounds();
  bool decode_event(uint32_t code, uint8_t control);
  bool stop(std::string why);
  bool read_bytes(void* to, size_t size);
  const std::string& text(uint64_t id);

  std::string path_;
  Options options_;
  Meta meta_;
  std::vector<std::string> strings_{1};
  std::vector<Site> sites_{1};
  std::vector<Thread> threads_;
  std::vector<std::string> variables_;
  std::vector<Input> inputs_;
  std::vector<Round> rounds_;
  std::vector<Nondet> nondets_;
  std::vector<std::string> messages_;
  ObjectStore objects_;
  std::unordered_map<uint32_t, uint64_t> ordinals_;
  uint64_t last_base_ = 0;
  uint32_t last_born_ = 0;
  Event event_;
  Expr expr_;
  Outcome outcome_ = Outcome::Truncated;
  int exit_code_ = 0;
  Recovery recovery_;
  std::unique_ptr<Decoder> decoder_;
};

// The whole trace in memory. A readable prefix of a damaged file is a trace with outcome Truncated; `recovery` tells.
Trace load(const std::string& path, Recovery* recovery = nullptr);
Trace load(Reader& reader);

}  // namespace stem::trace
