#include "predictor/parts.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include "predictor/prologue.h"
#include "trace/reader.h"
#include "trace/value_stream.h"

namespace stem::predictor {

using trace::Event;
using trace::Expr;
using trace::ExprId;
using trace::Kind;
using trace::Op;

namespace {

class PartBuilder {
 public:
  PartBuilder(const trace::Reader& reader, trace::ValueStream& values, const Prologue& prologue, uint64_t first,
              uint64_t operations)
      : reader_(reader), values_(values), first_expr_(values.next()) {
    part_.first = first;
    part_.operations = operations;
    part_.calm = prologue.calm();
    for (const Prologue::Item& item : prologue.events()) {
      add_event(item.event, prologue);
      part_.prologue.push_back(item.number);
    }
    part_.from = static_cast<uint32_t>(part_.trace.events.size());
  }

  void expr(const Expr& e) {
    Expr local = e;
    for (ExprId* operand : {&local.a, &local.b, &local.c}) *operand = known(*operand, true);
    if (e.op == Op::Read) local.value = e.value - part_.first + part_.from;
    exprs_.push_back(static_cast<ExprId>(part_.trace.exprs.size()));
    part_.trace.exprs.push_back(local);
  }

  void event(const Event& e) {
    Event local = e;
    local.expr = known(e.expr, false);
    local.leaf = known(e.leaf, false);
    if (e.kind == Kind::BarrierArrive || e.kind == Kind::BarrierLeave || e.kind == Kind::BarrierInit) {
      const std::pair key{e.object, e.addr};
      if (e.kind == Kind::BarrierInit) generations_[key] = 0;
      if (const auto it = generations_.find(key); it != generations_.end() && e.kind != Kind::BarrierInit)
        local.value -= std::min(local.value, it->second);
    }
    add(local);
  }

  Part finish(bool last) {
    trace::Trace& t = part_.trace;
    t.meta = reader_.meta();
    t.sites = reader_.sites();
    t.threads = reader_.threads();
    t.variables = reader_.variables();
    t.inputs = reader_.inputs();
    part_.last = last;
    if (last) t.outcome = reader_.outcome(), t.exit_code = reader_.exit_code();
    // Leaves of reads that the next part has.
    for (size_t i = 1; i < t.exprs.size(); ++i)
      if (t.exprs[i].op == Op::Read && t.exprs[i].value >= t.events.size()) t.exprs.resize(i);
    if (!last) hold_last_updates(t);
    return std::move(part_);
  }

 private:
  // The part's number of an expression; what came before the part is a constant, or nothing where nothing free is said.
  ExprId known(ExprId id, bool constant) {
    if (!id) return 0;
    if (id >= first_expr_) return exprs_[id - first_expr_];
    if (!constant) return 0;
    auto [it, fresh] = constants_.try_emplace(id, static_cast<ExprId>(part_.trace.exprs.size()));
    if (fresh) {
      const trace::ValueStore::Value v = values_.value(id);
      part_.trace.exprs.push_back({Op::Const, v.width, 0, 0, 0, v.value});
    }
    return it->second;
  }
  void add(Event e) {
    const auto index = static_cast<uint32_t>(part_.trace.events.size());
    if (e.object != trace::kNone) {
      const uint32_t number = e.object;
      auto [it, fresh] = objects_.try_emplace(number, static_cast<uint32_t>(part_.trace.objects.size()));
      if (fresh) {
        part_.trace.objects.push_back(reader_.object(number));
        part_.trace.objects.back().born = trace::kNone;
        part_.objects.push_back(number);
      }
      e.object = it->second;
      if (e.kind == Kind::Alloc) part_.trace.objects[e.object].born = index;
    }
    part_.trace.events.push_back(e);
  }
  void add_event(const Event& e, const Prologue& prologue) {
    if (e.kind == Kind::BarrierInit) generations_[{e.object, e.addr}] = prologue.generations(e);
    Event local = e;
    if (e.kind == Kind::BarrierArrive || e.kind == Kind::BarrierLeave) local.value -= prologue.generations(e);
    add(local);
  }

  const trace::Reader& reader_;
  trace::ValueStream& values_;
  const ExprId first_expr_;
  Part part_;
  std::vector<ExprId> exprs_;  // from first_expr_ on: numbers here
  std::unordered_map<ExprId, ExprId> constants_;
  std::unordered_map<uint32_t, uint32_t> objects_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> generations_;  // of each barrier, over before the part
};

}  // namespace

namespace {

class Cutter {
 public:
  Cutter(const std::string& path, const PartOptions& options, const std::function<bool(uint64_t, uint64_t)>& wanted,
         const std::function<bool(Part&&)>& use)
      : options_(options), wanted_(wanted), use_(use), reader_(path, reading()), prologue_(reader_) {}

  void run() {
    open_ = start();
    for (trace::Reader::Item item; (item = reader_.next()) != trace::Reader::Item::End;) {
      if (item == trace::Reader::Item::Expr) {
        values_.expr(reader_.expr(), reader_.inputs());
        for (PartBuilder* part : {open_.get(), next_.get()})
          if (part) part->expr(reader_.expr());
        continue;
      }
      for (PartBuilder* part : {open_.get(), next_.get()})
        if (part) part->event(reader_.event());
      values_.event(reader_.event());
      prologue_.add(number_++, reader_.event());
      operations_ += trace::is_visible(reader_.event().kind);
      // The next part begins where it does not matter who was woken by whom, if there is such a place soon.
      const uint64_t due = first_ + options_.size;
      if (!overlaps_ && number_ >= due && (prologue_.calm() || number_ >= due + options_.overlap))
        overlaps_ = true, next_ = start();
      if (overlaps_ && number_ >= first_ + options_.overlap) {
        if (open_ && !use_(open_->finish(false))) return;
        open_ = std::move(next_);
        overlaps_ = false;
      }
    }
    if (open_)
      use_(open_->finish(true));  // it holds all that the next one does
    else if (next_)
      use_(next_->finish(true));
  }

 private:
  static trace::Reader::Options reading() {
    trace::Reader::Options options;
    options.keep_nondets = false;
    return options;
  }
  std::unique_ptr<PartBuilder> start() {
    first_ = number_;
    if (!wanted_(first_, first_ + options_.size + 2 * options_.overlap)) return nullptr;
    return std::make_unique<PartBuilder>(reader_, values_, prologue_, first_, operations_);
  }

  const PartOptions options_;
  const std::function<bool(uint64_t, uint64_t)>& wanted_;
  const std::function<bool(Part&&)>& use_;
  trace::Reader reader_;
  trace::ValueStream values_;
  Prologue prologue_;
  std::unique_ptr<PartBuilder> open_, next_;  // two where they overlap
  bool overlaps_ = false;
  uint64_t number_ = 0, operations_ = 0;  // events so far, visible ones
  uint64_t first_ = 0;                    // of the part that began last
};

}  // namespace

void hold_last_updates(trace::Trace& trace) {
  std::vector<uint8_t> done(trace.threads.size(), 0);
  size_t left = done.size();
  for (size_t i = trace.events.size(); i-- > 0 && left > 0;) {
    Event& e = trace.events[i];
    if (done[e.thread] || e.kind == Kind::Pin) continue;
    if (e.kind == Kind::Rmw) e.flags |= trace::kPinned;
    done[e.thread] = 1;
    --left;
  }
}

void each_part(const std::string& path, const PartOptions& options,
               const std::function<bool(uint64_t, uint64_t)>& wanted, const std::function<bool(Part&&)>& use) {
  Cutter(path, options, wanted, use).run();
}

}  // namespace stem::predictor
