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

void Solver::enqueue(NodeId node) {
  node = find(node);
  if (nodes_[node].queued) return;
  nodes_[node].queued = true;
  ++queued_;
}

void Solver::add_base(NodeId node, LocationId location) {
  node = find(node);
  if (nodes_[node].all.test_and_set(location)) enqueue(node);
}

void Solver::add_copy(NodeId from, NodeId to) {
  from = find(from);
  to = find(to);
  if (from == to || !edges_.insert(pair_key(from, to)).second) return;
  nodes_[from].copies.push_back(to);
  if (nodes_[to].all |= nodes_[from].done) enqueue(to);
  if (nodes_[from].all != nodes_[from].done) enqueue(from);
}

// Constraints on a pointer apply to what it points to already and to all it will: forget what was passed on.
void Solver::add_load(NodeId pointer, NodeId to) {
  pointer = find(pointer);
  nodes_[pointer].loads.push_back(to);
  for (LocationId location : nodes_[pointer].done) add_copy(source_cell(location), to);
}

void Solver::add_store(NodeId pointer, NodeId from) {
  pointer = find(pointer);
  nodes_[pointer].stores.push_back(from);
  for (LocationId location : nodes_[pointer].done) add_copy(from, target_cell(location));
}

void Solver::add_move(NodeId from, NodeId to, int64_t offset, std::vector<uint64_t> strides) {
  from = find(from);
  for (LocationId location : nodes_[from].done) add_base(to, objects_.move(location, offset, strides));
  nodes_[from].moves.push_back({to, offset, std::move(strides)});
}

void Solver::add_copy_memory(NodeId to, NodeId from) {
  uint32_t index = static_cast<uint32_t>(memory_copies_.size());
  memory_copies_.push_back({to, from, kNoNode});
  to = find(to);
  from = find(from);
  nodes_[to].copy_memory_to.push_back(index);
  nodes_[from].copy_memory_from.push_back(index);
  copy_memory(index, PointsTo(nodes_[to].done), PointsTo(nodes_[from].done));
}

void Solver::add_call(NodeId pointer, uint32_t call) {
  pointer = find(pointer);
  nodes_[pointer].calls.push_back(call);
  // Report what is known already on the next visit: nothing was reported to this call yet.
  nodes_[pointer].done.clear();
  enqueue(pointer);
}

Solver::Whole& Solver::whole(ObjectId object) {
  auto entry = wholes_.find(object);
  if (entry != wholes_.end()) return entry->second;
  Whole fresh{add_node(), add_node()};
  Whole& result = wholes_.emplace(object, fresh).first->second;
  add_copy(fresh.stored, fresh.held);
  for (LocationId location : object_cells_[object]) {
    add_copy(fresh.stored, cells_.at(location));
    add_copy(cells_.at(location), fresh.held);
  }
  return result;
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
  std::vector<Subscriber> waiting = subscribers_[object];
  for (const Subscriber& subscriber : waiting) apply(subscriber, location);
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

const PointsTo& Solver::content(LocationId location) { return points_to(source_cell(location)); }

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
  std::vector<LocationId> present = object_cells_[source];
  for (LocationId location : present) apply({from, to}, location);
  add_copy(whole(source).stored, whole(objects_.at(to).object).stored);
}

void Solver::visit(NodeId node, const std::function<void(uint32_t, ObjectId)>& resolved) {
  PointsTo fresh = nodes_[node].all;
  fresh.intersectWithComplement(nodes_[node].done);
  nodes_[node].done = nodes_[node].all;
  // Callbacks and cells add nodes and edges: work on copies of the lists, by index.
  auto loads = nodes_[node].loads;
  auto stores = nodes_[node].stores;
  auto moves = nodes_[node].moves;
  auto calls = nodes_[node].calls;
  auto to = nodes_[node].copy_memory_to;
  auto from = nodes_[node].copy_memory_from;
  for (LocationId location : fresh) {
    for (NodeId target : loads) add_copy(source_cell(location), target);
    for (NodeId source : stores) add_copy(source, target_cell(location));
    for (const Move& move : moves) add_base(move.to, objects_.move(location, move.offset, move.strides));
    ObjectId object = objects_.at(location).object;
    if (objects_.object(object).kind == ObjectKind::Function)
      for (uint32_t call : calls) resolved(call, object);
  }
  for (uint32_t index : to) copy_memory(index, fresh, PointsTo(points_to(memory_copies_[index].from)));
  for (uint32_t index : from) copy_memory(index, PointsTo(points_to(memory_copies_[index].to)), fresh);
  node = find(node);
  auto copies = nodes_[node].copies;
  for (NodeId target : copies) {
    node = find(node);
    target = find(target);
    if (target == node) continue;
    if (nodes_[target].all |= fresh) enqueue(target);
  }
}

void Solver::solve(const std::function<void(uint32_t, ObjectId)>& resolved) {
  while (queued_ > 0)
    for (NodeId node : collapse_cycles()) {
      if (!nodes_[node].queued || find(node) != node) continue;
      nodes_[node].queued = false;
      --queued_;
      visit(node, resolved);
    }
}

// Tarjan's algorithm without recursion. Components come out in reverse topological order; each becomes one node.
std::vector<NodeId> Solver::collapse_cycles() {
  struct Frame {
    NodeId node;
    size_t edge;
  };
  const size_t count = nodes_.size();
  std::vector<uint32_t> number(count, 0), low(count, 0);
  std::vector<bool> open(count, false);
  std::vector<NodeId> stack, order;
  std::vector<std::pair<NodeId, NodeId>> merges;
  std::vector<Frame> frames;
  uint32_t next = 0;
  for (NodeId root = 0; root < count; ++root) {
    if (find(root) != root || number[root]) continue;
    frames.push_back({root, 0});
    while (!frames.empty()) {
      auto [node, edge] = frames.back();
      if (edge == 0 && !number[node]) {
        number[node] = low[node] = ++next;
        stack.push_back(node);
        open[node] = true;
      }
      if (edge < nodes_[node].copies.size()) {
        ++frames.back().edge;
        NodeId target = find(nodes_[node].copies[edge]);
        if (!number[target]) frames.push_back({target, 0});
        else if (open[target]) low[node] = std::min(low[node], number[target]);
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
  append(a.copies, b.copies);
  append(a.loads, b.loads);
  append(a.stores, b.stores);
  append(a.moves, b.moves);
  append(a.calls, b.calls);
  append(a.copy_memory_to, b.copy_memory_to);
  append(a.copy_memory_from, b.copy_memory_from);
  b.all.clear();
  b.done.clear();
  if (a.all != a.done) enqueue(keep);
}

}  // namespace stem::analysis
