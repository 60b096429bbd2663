#include "explorer/flows.h"

#include <array>
#include <map>
#include <tuple>

#include "explorer/happens_before.h"

namespace stem::explorer {
namespace {

using trace::Event;
using trace::Kind;

constexpr size_t kScheduleSteps = 20000;  // a longer schedule stays in the trace only

// The last write of each byte, eight bytes a cell. A cell remembers the object that it belongs to: memory that was
// freed and given out again starts anew without being cleared.
struct Cell {
  std::array<uint32_t, 8> definition{};  // index into definitions_; 0: the initial value
  std::array<uint32_t, 8> object{};
};

struct Definition {
  db::DefKind kind = db::DefKind::Initial;
  uint32_t site = db::kNone;
  HappensBefore::Access access;
  bool operator==(const Definition&) const = default;
};

class Flows {
 public:
  Flows(trace::Reader& reader, FlowObserver* observer) : reader_(reader), observer_(observer) {}

  db::RunData run() {
    while (true) {
      const auto item = reader_.next();
      if (item == trace::Reader::Item::End) break;
      if (item == trace::Reader::Item::Event) event(reader_.event());
    }
    finish();
    return std::move(data_);
  }

 private:
  void event(const Event& e) {
    order_.event(e);
    if (trace::is_visible(e.kind)) scheduled(e.thread);
    switch (e.kind) {
      case Kind::Read:
        read(e);
        break;
      case Kind::Write:
        write(e);
        break;
      case Kind::External:
        write(e);
        break;
      case Kind::Rmw:
        read(e);
        write(e);
        break;
      case Kind::Branch:
        if (observer_) observer_->branch(reader_, e);
        ++branches_[{site(e.site), static_cast<int64_t>(e.value)}];
        break;
      case Kind::Assert:
      case Kind::Fault:
        if (e.kind == Kind::Fault || e.value == 0) failed_ = {e.site, e.thread};
        break;
      default:
        break;  // nothing of memory or control flow
    }
  }

  void scheduled(uint32_t thread) {
    auto& schedule = data_.run.schedule;
    ++data_.run.events;
    if (too_long_) return;
    if (schedule.empty() || schedule.back().first != thread) schedule.emplace_back(thread, 0);
    ++schedule.back().second;
    if (schedule.size() > kScheduleSteps) {
      too_long_ = true;
      schedule.clear();
    }
  }

  void read(const Event& e) {
    if (e.kind == Kind::Rmw || (e.flags & trace::kAtomic)) order_.atomic_read(e);
    const uint32_t use = site(e.site), variable = variable_of(e);
    ++accesses_[{use, variable, e.kind == Kind::Rmw ? db::Access::Rmw : db::Access::Read}];
    if (observer_) observer_->access(reader_, e, false);
    const HappensBefore::Access access = order_.access(e);
    uint32_t seen[8];
    size_t count = 0;
    for (uint32_t i = 0; i < e.size && i < 8; ++i) {
      const uint32_t definition = definition_at(e.addr + i, e.object);
      bool known = false;
      for (size_t k = 0; k < count; ++k) known |= seen[k] == definition;
      if (!known) seen[count++] = definition;
    }
    for (size_t k = 0; k < count; ++k) {
      const Definition& d = definitions_[seen[k]];
      observe(d, use, variable, access);
      if (observer_)
        observer_->flow(reader_, d.kind, d.kind == db::DefKind::Write ? data_.names.sites[d.site].key : 0, e);
    }
    if (count) follow(e, use, variable, definitions_[seen[0]]);
  }

  void observe(const Definition& d, uint32_t use, uint32_t variable, const HappensBefore::Access& access) {
    db::Observation o;
    o.pair = {variable, d.kind, d.kind == db::DefKind::Write ? d.site : db::kNone, use};
    o.use_thread = access.thread;
    if (d.kind == db::DefKind::Write) {
      o.def_thread = d.access.thread;
      o.relation = order_.relation(d.access, access);
    } else {
      o.relation = d.kind == db::DefKind::Initial ? db::Relation::Ordered : db::Relation::Unknown;
    }
    o.first_event = static_cast<int64_t>(reader_.event_index());
    data_.observations.add(o);
  }

  void write(const Event& e) {
    Definition d;
    d.kind = e.kind == Kind::External ? db::DefKind::External : db::DefKind::Write;
    d.site = site(e.site);
    d.access = order_.access(e);
    if (e.kind != Kind::External) {
      if (observer_) observer_->access(reader_, e, true);
      const uint32_t variable = variable_of(e);
      if (e.kind == Kind::Write) ++accesses_[{d.site, variable, db::Access::Write}];
      if (e.kind == Kind::Rmw || (e.flags & trace::kAtomic)) order_.atomic_write(e);
    }
    // Writes of one site by one thread between two releases are alike: one definition serves them all.
    uint32_t& last = last_definition_[uint64_t{d.site} << 32 | e.thread];
    if (last == 0 || !(definitions_[last] == d)) {
      last = static_cast<uint32_t>(definitions_.size());
      definitions_.push_back(d);
    }
    for (uint32_t i = 0; i < e.size && i < 8; ++i) {
      Cell& cell = memory_[(e.addr + i) >> 3];
      cell.definition[(e.addr + i) & 7] = last;
      cell.object[(e.addr + i) & 7] = e.object;
    }
  }

  uint32_t definition_at(uint64_t addr, uint32_t object) const {
    const auto found = memory_.find(addr >> 3);
    if (found == memory_.end()) return 0;
    return found->second.object[addr & 7] == object ? found->second.definition[addr & 7] : 0;
  }

  void follow(const Event& e, uint32_t use, uint32_t variable, const Definition& d) {
    LastRead& last = reads_[e.addr * 0x9e3779b97f4a7c15u ^ e.thread];
    const uint64_t definition = uint64_t{static_cast<uint32_t>(d.kind)} << 32 | d.site;
    if (last.variable == variable && last.object == e.object && last.valid) {
      auto& [same, different] = followers_[{variable, last.site, use}];
      ++(last.definition == definition ? same : different);
    }
    last = {use, variable, e.object, definition, true};
  }

  // Sites with one key are one site: the same inline function in two objects.
  uint32_t site(uint32_t id) {
    if (id >= site_index_.size()) site_index_.resize(id + 1, db::kNone);
    if (site_index_[id] != db::kNone) return site_index_[id];
    const trace::Site& s = reader_.sites().at(id);
    const auto [at, fresh] = site_keys_.try_emplace(s.key, static_cast<uint32_t>(data_.names.sites.size()));
    if (fresh) data_.names.sites.push_back({s.key, s.file, s.line, s.column, s.function, s.text});
    return site_index_[id] = at->second;
  }

  uint32_t variable_of(const Event& e) {
    const std::string& name = e.variable == trace::kNone ? unnamed_ : reader_.variables().at(e.variable);
    if (e.variable != trace::kNone) {
      if (e.variable >= variable_index_.size()) variable_index_.resize(e.variable + 1, db::kNone);
      if (variable_index_[e.variable] != db::kNone) return variable_index_[e.variable];
    }
    const auto [at, fresh] = variable_names_.try_emplace(name, static_cast<uint32_t>(data_.names.variables.size()));
    if (fresh) data_.names.variables.push_back(name);
    if (e.variable != trace::kNone) variable_index_[e.variable] = at->second;
    return at->second;
  }

  void finish() {
    for (const trace::Thread& t : reader_.threads()) data_.names.threads.push_back({t.path, t.start});
    for (const auto& [key, count] : accesses_)
      data_.accesses.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), count});
    for (const auto& [key, count] : branches_) data_.branches.push_back({key.first, key.second, count});
    for (const auto& [key, counts] : followers_) {
      data_.followers.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), counts.first, counts.second});
    }
    for (const trace::Input& input : reader_.inputs()) data_.inputs.push_back({input.name, input.bytes});
    const trace::Meta& meta = reader_.meta();
    data_.run.recorder = meta.recorder;
    data_.run.semantics = meta.semantics;
    data_.run.mode = meta.mode;
    data_.run.seed = meta.seed;
    data_.run.argv = meta.argv;
    data_.run.cwd = meta.cwd;
    data_.run.outcome = trace::outcome_name(reader_.outcome());
    data_.run.exit_code = reader_.exit_code();
    data_.names.version.build_id = meta.build_id;
    if (failed_.first) {
      data_.failed_site = site(failed_.first);
      data_.failed_thread = failed_.second;
    }
  }

  struct LastRead {
    uint32_t site = 0, variable = 0, object = 0;
    uint64_t definition = 0;
    bool valid = false;
  };

  trace::Reader& reader_;
  FlowObserver* observer_;
  HappensBefore order_;
  db::RunData data_;
  std::unordered_map<uint64_t, Cell> memory_;
  std::vector<Definition> definitions_{1};
  std::unordered_map<uint64_t, uint32_t> last_definition_;
  std::unordered_map<uint64_t, LastRead> reads_;
  std::map<std::tuple<uint32_t, uint32_t, db::Access::Kind>, uint64_t> accesses_;
  std::map<std::pair<uint32_t, int64_t>, uint64_t> branches_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>> followers_;
  std::vector<uint32_t> site_index_, variable_index_;
  std::unordered_map<uint64_t, uint32_t> site_keys_;
  std::unordered_map<std::string, uint32_t> variable_names_;
  const std::string unnamed_ = "(unnamed memory)";
  std::pair<trace::SiteId, uint32_t> failed_{0, 0};
  bool too_long_ = false;
};

}  // namespace

db::RunData observed_flows(trace::Reader& reader, FlowObserver* observer) { return Flows(reader, observer).run(); }

}  // namespace stem::explorer
