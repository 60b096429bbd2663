// Turns the raw records of a run (trace/raw.h) into a trace: resolves sites, names objects and variables, numbers
// expressions, and infers writes that nobody recorded.
//
// External writes. A read whose value differs from what the last recorded write or read of these bytes left (or from
// what the object began with) was preceded by a write that no recorder saw: an External event is put before it, and the
// object is tainted from then on. This happens here, where the memory's last values are at hand for the file's
// predictions.
//
// Loops. Records that come round again take a short cut (paths.cpp).
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/raw.h"
#include "trace/writer.h"
#include "tracer/launch/collect/groups.h"
#include "tracer/launch/collect/modules.h"
#include "tracer/launch/collect/objects.h"

namespace stem::collect {

class Translator {
 public:
  explicit Translator(trace::Writer& writer) : writer_(writer) { select(0); }

  // Serialised streams need no select(): they hold Switch records. Parallel ones name the thread of what follows.
  void select(uint32_t thread);
  void records(const stem_rec* begin, const stem_rec* end);

  // Whether the selected thread's next record belongs to the one before it.
  bool in_blob() const { return thread_->blob_left != 0; }
  bool needs_more() const { return in_blob() || thread_->wait == Wait::Value2; }

  // Ends the trace: nothing more comes.
  void finish();

  // Records that make no sense: the program has written over the recorder's memory. Nothing after them is used.
  bool broken() const { return broken_; }
  const Modules& modules() const { return modules_; }
  uint64_t externals() const { return externals_; }

 private:
  enum class Wait : uint8_t { None, Callers, Value2, InputBytes, NondetBytes };
  // Where one stream of records stands.
  struct Thread {
    trace::ThreadId id = trace::kNone;
    std::string path;
    trace::IdRuns ids;
    Wait wait = Wait::None;  // `event` is to be written once this has come
    trace::Event event;
    std::string name;        // of the input or nondet under way
    bool has_third = false;  // an Expr2 record came
    uint32_t third_id = 0;
    uint64_t third_value = 0;
    uint64_t blob_left = 0;  // bytes
    unsigned blob_type = 0;
    std::string blob;
    uint32_t new_index = 0, new_parent = 0;  // a Thread record under way
    uint64_t module_bias = 0, module_begin = 0, module_size = 0;
  };

  void record(const stem_rec& r);
  bool again(const stem_rec& r, unsigned kind);
  size_t along_path(const stem_rec* at, const stem_rec* end);
  bool can_learn(const stem_rec& r) const;
  void learn(const stem_rec& r, trace::ExprId before);
  void can_repeat(const stem_rec& r, uint64_t address, uint32_t slot, bool field);
  void memory(const stem_rec& r, trace::Kind kind);
  void other(const stem_rec& r, trace::Kind kind);
  void expression(const stem_rec& r);
  void rounds(const stem_rec& r);
  void define_round(const std::string& bytes);
  size_t groups(const stem_rec* begin, const stem_rec* end);  // gives how many records they take
  void blob_part(const stem_rec& r);
  void blob_done(Thread& t);
  void complete_pending();
  void allocate(trace::Event& event);
  void release(trace::Event& event);
  void define_thread(uint32_t index, uint32_t parent, const std::string& path, std::string start);
  trace::ThreadId thread_id();

  trace::SiteId site(uint32_t low, uint64_t address = 0);  // address: what it accesses
  trace::SiteId resolve_site(uint32_t low, uint64_t address);
  void message(const std::string& text);
  void locate(trace::Event& event, uint32_t& slot);
  uint32_t find_object(uint64_t address, trace::SiteId site);
  uint32_t new_object(trace::Object object, const std::string& layout, bool frame = false);
  uint32_t variable(Live& live, uint64_t address, trace::SiteId site);
  uint32_t new_variable(const std::string& name);
  uint32_t whole(uint32_t variable);
  void explain(const trace::Event& read, Live* live);
  trace::ExprId constant(unsigned width, uint64_t value);
  trace::ExprId operand(uint32_t local, unsigned width, uint64_t value);
  std::string ordinal(const std::string& name);
  void drop(uint32_t object);
  void spoil() { broken_ = true; }

  struct SiteInfo {
    const trace::ProgramSite* program = nullptr;
    uint32_t path = 0;                     // number of its field path
    uint32_t slot = LiveObjects::kNoSlot;  // of the object it accessed last
  };

  trace::Writer& writer_;
  Modules modules_;
  LiveObjects live_;
  std::deque<Thread> threads_;  // by raw index
  Thread* thread_ = nullptr;
  std::vector<SiteInfo> sites_{1};  // by SiteId
  std::vector<std::pair<uint32_t, trace::SiteId>> site_cache_ =
      std::vector<std::pair<uint32_t, trace::SiteId>>(1 << 12);
  std::unordered_map<uint32_t, trace::SiteId> site_ids_;
  std::unordered_map<std::string, uint32_t> paths_{{"", 0}};
  std::vector<std::string> path_names_{""};
  std::unordered_map<std::string, std::unique_ptr<Layout>> layouts_;
  std::unordered_map<std::string, std::unique_ptr<Type>> types_;
  std::unordered_map<std::string, uint32_t> variables_;
  std::vector<std::string> variable_names_;
  std::unordered_map<uint32_t, uint32_t> whole_;  // variables of synchronisation objects
  std::unordered_map<std::string, uint64_t> ordinals_;
  std::unordered_map<std::string, std::string> global_files_;  // identity of a global -> where it was defined
  std::unordered_map<uint64_t, std::string> functions_;        // by return address
  trace::Constants constants_;
  std::vector<uint32_t> rounds_;  // the recorder's loops that only compute, as the writer numbers them
  std::vector<Group> groups_;
  std::vector<stem_rec> expanded_;
  std::vector<trace::Path> loops_ = std::vector<trace::Path>(256);
  trace::Path* learning_ = nullptr;
  size_t learn_left_ = 0;
  std::unordered_map<uint64_t, uint32_t> inputs_;  // the recorder's number -> ours
  std::vector<uint32_t> ended_;
  std::deque<uint32_t> to_drop_;
  std::vector<uint64_t> callers_;
  trace::Meta meta_;
  bool leafless_ = false;  // stem record --no-expressions: what reads would be leaves are held instead
  std::optional<trace::Event> exit_;
  int fault_signal_ = 0;
  uint64_t externals_ = 0;
  bool broken_ = false, finished_ = false;
};

}  // namespace stem::collect
