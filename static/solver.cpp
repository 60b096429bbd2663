#include "static/solver.h"

#include <algorithm>

namespace stem::analysis {

namespace {

uint64_t pair_key(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) << 32 | b; }

template <typename T>
void append(std::vector<T>& to, std::vector<T>& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  from.clear();
}

}  // namespace

NodeId Solver::add_node() {
  nodes_.emplace_back();
  parent_.push_back(static_cast<NodeId>(nodes_.size() - 1));
  return parent_.back();
}

NodeId Solver::find(NodeId node) const {
  while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
  return node;
}

Solver::Uses& Solver::uses(NodeId node) {
  auto& uses = nodes_[node].uses;
  if (!uses) uses = std::make_unique<Uses>();
  return *uses;
}

void Solver::enqueue(NodeId node) {
  node = find(node);
  if (nodes_[node].queued) return;
  nodes_[node].queued = true;
  ++queued_;
}

void Solver::add_base(NodeId node, LocationId location) {
  node = find(node);
  if (nodes_[node].unknown && objects_.external_locations().test(location)) return;
  if (nodes_[node].all.test_and_set(location)) enqueue(node);
}

void Solver::add_unknown(NodeId node) {
  node = find(node);
  if (nodes_[node].unknown) return;
  nodes_[node].unknown = true;
  enqueue(node);
}

void Solver::add_escape(NodeId node) {
  node = find(node);
  if (nodes_[node].escapes) return;
  nodes_[node].escapes = true;
  enqueue(node);
}

void Solver::add_copy(NodeId from, NodeId to) {
  from = find(from);
  to = find(to);
  if (from == to || !nodes_[from].copies.test_and_set(to)) return;
  if (nodes_[to].all |= nodes_[from].done) enqueue(to);
  if (nodes_[from].unknown_done) add_unknown(to);
}

// Constraints on a pointer apply to what it points to already and to all it will.
void Solver::add_load(NodeId pointer, NodeId to) {
  pointer = find(pointer);
  uses(pointer).loads.push_back(to);
  if (nodes_[pointer].unknown_done) add_unknown(to);
  if (nodes_[pointer].done.empty()) return;
  const PointsTo done = nodes_[pointer].done;
  for (LocationId location : done) add_copy(source_cell(location), to);
}

void Solver::add_store(NodeId pointer, NodeId from) {
  pointer = find(pointer);
  uses(pointer).stores.push_back(from);
  if (nodes_[pointer].unknown_done) add_escape(from);
  if (nodes_[pointer].done.empty()) return;
  const PointsTo done = nodes_[pointer].done;
  for (LocationId location : done) add_copy(from, target_cell(location));
}

void Solver::add_move(NodeId from, NodeId to, int64_t offset, std::vector<uint64_t> strides, bool indexed) {
  from = find(from);
  if (nodes_[from].unknown_done) add_unknown(to);
  for (LocationId location : nodes_[from].done) add_base(to, objects_.move(location, offset, strides, indexed));
  const auto shape =
      shapes_.try_emplace({offset, strides, indexed}, static_cast<uint32_t>(shapes_.size())).first->second;
  uses(from).moves.push_back({to, offset, std::move(strides), indexed, shape});
}

void Solver::add_copy_memory(NodeId to, NodeId from) {
  uint32_t index = static_cast<uint32_t>(memory_copies_.size());
  memory_copies_.push_back({to, from, kNoNode});
  to = find(to);
  from = find(from);
  uses(to).copy_memory_to.push_back(index);
  uses(from).copy_memory_from.push_back(index);
  // On the next visit, both are looked at as if nothing had been passed on.
  for (NodeId node : {to, from}) {
    nodes_[node].done.clear();
    nodes_[node].unknown_done = false;
    enqueue(node);
  }
}

void Solver::add_call(NodeId pointer, uint32_t call) {
  pointer = find(pointer);
  uses(pointer).calls.push_back(call);
  nodes_[pointer].done.clear();
  nodes_[pointer].unknown_done = false;
  enqueue(pointer);
}

void Solver::expose(ObjectId object) {
  if (objects_.object(object).external) return;
  objects_.set_external(object);
  switch (objects_.object(object).kind) {
    case ObjectKind::External:
      return;
    case ObjectKind::Function:
      exposed_.push_back(object);
      return;
    case ObjectKind::Global:
    case ObjectKind::Stack:
    case ObjectKind::Heap:
      break;
  }
  Whole parts = whole(object);
  add_unknown(parts.stored);
  add_escape(parts.held);
}

Solver::Whole Solver::whole(ObjectId object) {
  auto entry = wholes_.find(object);
  if (entry != wholes_.end()) return entry->second;
  Whole fresh{add_node(), add_node()};
  wholes_.emplace(object, fresh);
  add_copy(fresh.stored, fresh.held);
  for (LocationId location : object_cells_[object]) {
    add_copy(fresh.stored, cells_.at(location));
    add_copy(cells_.at(location), fresh.held);
  }
  return fresh;
}

NodeId Solver::cell(LocationId location) {
  auto entry = cells_.find(location);
  if (entry != cells_.end()) return entry->second;
  NodeId node = add_node();
  cells_.emplace(location, node);
  ObjectId object = objects_.at(location).object;
  object_cells_[object].push_back(location);
  auto known = wholes_.find(object);
  if (known != wholes_.end()) {
    add_copy(known->second.stored, node);
    add_copy(node, known->second.held);
  }
  auto waiting = subscribers_.find(object);
  if (waiting != subscribers_.end()) {
    const std::vector<Subscriber> present = waiting->second;
    for (const Subscriber& subscriber : present) apply(subscriber, location);
  }
  return node;
}

NodeId Solver::source_cell(LocationId location) {
  if (objects_.at(location).offset != kAnyOffset) return cell(location);
  return whole(objects_.at(location).object).held;
}

NodeId Solver::target_cell(LocationId location) {
  if (objects_.at(location).offset != kAnyOffset) return cell(location);
  return whole(objects_.at(location).object).stored;
}

void Solver::contents(ObjectId object, const std::function<void(const PointsTo&, bool unknown)>& tell) const {
  auto cells = object_cells_.find(object);
  if (cells != object_cells_.end())
    for (LocationId location : cells->second) tell(points_to(cells_.at(location)), unknown(cells_.at(location)));
  auto parts = wholes_.find(object);
  if (parts != wholes_.end()) tell(points_to(parts->second.held), unknown(parts->second.held));
}

void Solver::apply(const Subscriber& subscriber, LocationId cell_location) {
  Location from = objects_.at(subscriber.from), to = objects_.at(subscriber.to), at = objects_.at(cell_location);
  if (from.offset == kAnyOffset || to.offset == kAnyOffset) {
    add_copy(cell(cell_location), whole(to.object).stored);
  } else if (at.offset >= from.offset) {
    LocationId target = objects_.location(to.object, to.offset + (at.offset - from.offset));
    add_copy(cell(cell_location), target_cell(target));
  }
}

// Field by field between a few objects; between many the pairs would be quadratic, and nothing is told apart any more.
void Solver::copy_memory(uint32_t index, const PointsTo& to, const PointsTo& from) {
  constexpr unsigned kFew = 8;
  if (memory_copies_[index].via == kNoNode && to.count() <= kFew && from.count() <= kFew) {
    for (LocationId target : to)
      for (LocationId source : from) copy_locations(target, source);
    return;
  }
  if (memory_copies_[index].via == kNoNode) memory_copies_[index].via = add_node();
  NodeId via = memory_copies_[index].via;
  for (LocationId source : from) add_copy(whole(objects_.at(source).object).held, via);
  for (LocationId target : to) add_copy(via, whole(objects_.at(target).object).stored);
}

void Solver::copy_locations(LocationId to, LocationId from) {
  if (to == from || !copied_.insert(pair_key(to, from)).second) return;
  ObjectId source = objects_.at(from).object;
  subscribers_[source].push_back({from, to});
  const std::vector<LocationId> present = object_cells_[source];
  for (LocationId location : present) apply({from, to}, location);
  add_copy(whole(source).stored, whole(objects_.at(to).object).stored);
}

bool Solver::is_function(LocationId location) const {
  return objects_.object(objects_.at(location).object).kind == ObjectKind::Function;
}

void Solver::add_bases(NodeId node, const PointsTo& locations) {
  node = find(node);
  if (nodes_[node].unknown) {
    PointsTo known = locations;
    known.subtract(objects_.external_locations());
    if (nodes_[node].all |= known) enqueue(node);
  } else if (nodes_[node].all |= locations) {
    enqueue(node);
  }
}

NodeId Solver::loaded(Shared& shared, const PointsTo& from) {
  if (shared.loaded != kNoNode) return shared.loaded;
  shared.loaded = add_node();
  for (LocationId location : from)
    if (!is_function(location)) add_copy(source_cell(location), shared.loaded);
  return shared.loaded;
}

NodeId Solver::stored(Shared& shared, const PointsTo& to) {
  if (shared.stored != kNoNode) return shared.stored;
  shared.stored = add_node();
  for (LocationId location : to)
    if (!is_function(location)) add_copy(shared.stored, target_cell(location));
  return shared.stored;
}

void Solver::use_many(Uses& uses, const PointsTo& fresh) {
  if (uses.loads.empty() && uses.stores.empty() && uses.moves.empty()) return;
  Shared& shared = shared_[fresh];
  for (NodeId target : uses.loads) add_copy(loaded(shared, fresh), target);
  for (NodeId source : uses.stores) add_copy(source, stored(shared, fresh));
  for (const Move& move : uses.moves) {
    auto [moved, first] = shared.moved.try_emplace(move.shape);
    if (first) {
      std::vector<uint32_t> to;
      for (LocationId location : fresh) to.push_back(objects_.move(location, move.offset, move.strides, move.indexed));
      moved->second = PointsTo::of(std::move(to));
    }
    add_bases(move.to, moved->second);
  }
}

void Solver::use(Uses& uses, const PointsTo& fresh, bool unknown_fresh, Listener& listener) {
  if (unknown_fresh) {
    for (NodeId target : uses.loads) add_unknown(target);
    for (NodeId source : uses.stores) add_escape(source);
    for (const Move& move : uses.moves) add_unknown(move.to);
    for (uint32_t call : uses.calls) listener.called_unknown(call);
  }
  constexpr size_t kMany = 8;
  const bool many = fresh.count() > kMany;
  if (many) use_many(uses, fresh);
  if (!many || !uses.calls.empty())
    for (LocationId location : fresh) {
      if (is_function(location))
        for (uint32_t call : uses.calls) listener.called(call, objects_.at(location).object);
      if (many) continue;
      if (!is_function(location)) {
        for (NodeId target : uses.loads) add_copy(source_cell(location), target);
        for (NodeId source : uses.stores) add_copy(source, target_cell(location));
      }
      for (const Move& move : uses.moves)
        add_base(move.to, objects_.move(location, move.offset, move.strides, move.indexed));
    }
  // From a pointer that may be anything: what the target holds may be anything. To one: what the source holds escapes.
  for (uint32_t index : uses.copy_memory_to) {
    const NodeId other = find(memory_copies_[index].from);
    const PointsTo sources = nodes_[other].all;
    copy_memory(index, fresh, sources);
    if (nodes_[other].unknown)
      for (LocationId target : fresh) add_unknown(whole(objects_.at(target).object).stored);
    if (unknown_fresh)
      for (LocationId source : sources) add_escape(whole(objects_.at(source).object).held);
  }
  for (uint32_t index : uses.copy_memory_from) {
    const NodeId other = find(memory_copies_[index].to);
    const PointsTo targets = nodes_[other].all;
    copy_memory(index, targets, fresh);
    if (nodes_[other].unknown)
      for (LocationId source : fresh) add_escape(whole(objects_.at(source).object).held);
    if (unknown_fresh)
      for (LocationId target : targets) add_unknown(whole(objects_.at(target).object).stored);
  }
}

void Solver::visit(NodeId node, Listener& listener) {
  const bool escapes_fresh = nodes_[node].escapes && !nodes_[node].escapes_done;
  if (escapes_fresh) {
    const PointsTo present = nodes_[node].all;
    for (LocationId location : present) expose(objects_.at(location).object);
  }
  if (nodes_[node].unknown) nodes_[node].all.subtract(objects_.external_locations());
  PointsTo fresh = nodes_[node].all;
  fresh.subtract(nodes_[node].done);
  const bool unknown_fresh = nodes_[node].unknown && !nodes_[node].unknown_done;
  nodes_[node].done = nodes_[node].all;
  nodes_[node].unknown_done = nodes_[node].unknown;
  nodes_[node].escapes_done = nodes_[node].escapes;
  if (nodes_[node].escapes && !escapes_fresh)
    for (LocationId location : fresh) expose(objects_.at(location).object);
  if (nodes_[node].uses && (unknown_fresh || !fresh.empty())) {
    // What the uses cause adds nodes and constraints, some of them to this very node: they are held aside meanwhile.
    std::unique_ptr<Uses> held = std::move(nodes_[node].uses);
    use(*held, fresh, unknown_fresh, listener);
    Uses& now = uses(node);
    append(held->loads, now.loads);
    append(held->stores, now.stores);
    append(held->moves, now.moves);
    append(held->calls, now.calls);
    append(held->copy_memory_to, now.copy_memory_to);
    append(held->copy_memory_from, now.copy_memory_from);
    nodes_[node].uses = std::move(held);
  }
  if (!unknown_fresh && fresh.empty()) return;
  for (NodeId edge : nodes_[node].copies) {
    const NodeId target = find(edge);
    if (target == node) continue;
    if (unknown_fresh) add_unknown(target);
    if (nodes_[target].all |= fresh) enqueue(target);
  }
}

void Solver::solve(Listener& listener) {
  while (queued_ > 0 || !exposed_.empty()) {
    while (!exposed_.empty()) {
      const ObjectId function = exposed_.back();
      exposed_.pop_back();
      listener.exposed(function);
    }
    for (NodeId node : collapse_cycles()) {
      if (!nodes_[node].queued) continue;
      nodes_[node].queued = false;
      --queued_;
      visit(node, listener);
    }
  }
}

// Tarjan's algorithm without recursion. Components come out in reverse topological order; each becomes one node.
std::vector<NodeId> Solver::collapse_cycles() {
  struct Frame {
    NodeId node;
    NumberSet::iterator edge, end;
  };
  const size_t count = nodes_.size();
  std::vector<uint32_t> number(count, 0), low(count, 0);
  std::vector<bool> open(count, false);
  std::vector<NodeId> stack, order;
  std::vector<std::pair<NodeId, NodeId>> merges;
  std::vector<Frame> frames;
  uint32_t next = 0;
  const auto enter = [&](NodeId node) {
    number[node] = low[node] = ++next;
    stack.push_back(node);
    open[node] = true;
    frames.push_back({node, nodes_[node].copies.begin(), nodes_[node].copies.end()});
  };
  for (NodeId root = 0; root < count; ++root) {
    if (find(root) != root || number[root]) continue;
    enter(root);
    while (!frames.empty()) {
      Frame& frame = frames.back();
      const NodeId node = frame.node;
      if (frame.edge != frame.end) {
        const NodeId target = find(*frame.edge);
        ++frame.edge;
        if (!number[target])
          enter(target);
        else if (open[target])
          low[node] = std::min(low[node], number[target]);
        continue;
      }
      frames.pop_back();
      if (!frames.empty()) low[frames.back().node] = std::min(low[frames.back().node], low[node]);
      if (low[node] != number[node]) continue;
      order.push_back(node);
      for (NodeId member = stack.back();; member = stack.back()) {
        stack.pop_back();
        open[member] = false;
        if (member == node) break;
        merges.emplace_back(node, member);
      }
    }
  }
  for (auto [keep, drop] : merges) unite(keep, drop);
  std::reverse(order.begin(), order.end());
  return order;
}

// What only one of the two has passed on counts as not passed on.
void Solver::unite(NodeId keep, NodeId drop) {
  keep = find(keep);
  drop = find(drop);
  if (keep == drop) return;
  parent_[drop] = keep;
  if (nodes_[drop].queued) --queued_;
  nodes_[drop].queued = false;
  Node &a = nodes_[keep], &b = nodes_[drop];
  a.all |= b.all;
  a.done &= b.done;
  a.unknown |= b.unknown;
  a.escapes |= b.escapes;
  a.unknown_done &= b.unknown_done;
  a.escapes_done &= b.escapes_done;
  a.copies |= b.copies;
  a.copies.reset(keep);
  a.copies.reset(drop);
  if (b.uses) {
    Uses& uses = this->uses(keep);
    append(uses.loads, b.uses->loads);
    append(uses.stores, b.uses->stores);
    append(uses.moves, b.uses->moves);
    append(uses.calls, b.uses->calls);
    append(uses.copy_memory_to, b.uses->copy_memory_to);
    append(uses.copy_memory_from, b.uses->copy_memory_from);
    b.uses.reset();
  }
  b.all.clear();
  b.done.clear();
  b.copies.clear();
  enqueue(keep);
}

}  // namespace stem::analysis
