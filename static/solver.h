// Inclusion constraints and their least solution (Andersen): every node has a set of locations it may point to.
//
// Wave propagation: in rounds, cycles of copies are collapsed (Tarjan, union-find) and what nodes have gained since their last
// visit is passed on once in topological order. A round costs the number of edges; a few dozen suffice for large programs,
// where looking for cycles edge by edge took minutes. Loads and stores go through one node per location (its cell).
#pragma once

#include <llvm/ADT/SparseBitVector.h>

#include <deque>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "static/objects.h"

namespace stem::analysis {

using NodeId = uint32_t;
using PointsTo = llvm::SparseBitVector<>;
constexpr NodeId kNoNode = UINT32_MAX;

class Solver {
 public:
  explicit Solver(Objects& objects) : objects_(objects) {}

  NodeId add_node();
  void add_base(NodeId node, LocationId location);  // node points to location
  void add_copy(NodeId from, NodeId to);            // to includes from
  void add_load(NodeId pointer, NodeId to);         // to includes *pointer
  void add_store(NodeId pointer, NodeId from);      // *pointer includes from
  void add_move(NodeId from, NodeId to, int64_t offset, std::vector<uint64_t> strides);
  void add_copy_memory(NodeId to, NodeId from);     // memcpy
  void add_call(NodeId pointer, uint32_t call);     // reports every function that pointer may be, once

  // Runs to the fixpoint; `resolved(call, function object)` may add nodes and constraints.
  void solve(const std::function<void(uint32_t, ObjectId)>& resolved);

  const PointsTo& points_to(NodeId node) const { return nodes_[find(node)].all; }
  // What the bytes at a location may point to.
  const PointsTo& content(LocationId location);
  size_t node_count() const { return nodes_.size(); }

 private:
  struct Move {
    NodeId to;
    int64_t offset;
    std::vector<uint64_t> strides;
  };
  struct Node {
    PointsTo all, done;  // what it points to; what of that has been passed on
    std::vector<NodeId> copies, loads, stores;
    std::vector<Move> moves;
    std::vector<uint32_t> copy_memory_to, copy_memory_from, calls;  // indices into memory_copies_; call ids
    bool queued = false;
  };
  struct MemoryCopy {
    NodeId to, from;
    NodeId via = kNoNode;  // once many objects are involved: everything of the sources to everywhere in the targets
  };
  struct Whole {  // of an object with unknown offsets: what may be stored anywhere in it, what any part may hold
    NodeId stored, held;
  };
  struct Subscriber {
    LocationId from, to;
  };

  NodeId find(NodeId node) const;
  void enqueue(NodeId node);
  void visit(NodeId node, const std::function<void(uint32_t, ObjectId)>& resolved);
  NodeId cell(LocationId location);                 // of a known offset
  NodeId source_cell(LocationId location);          // where a load reads
  NodeId target_cell(LocationId location);          // where a store goes
  Whole& whole(ObjectId object);
  void copy_memory(uint32_t index, const PointsTo& to, const PointsTo& from);
  void copy_locations(LocationId to, LocationId from);
  void apply(const Subscriber& subscriber, LocationId cell_location);
  std::vector<NodeId> collapse_cycles();  // what is left, in topological order
  void unite(NodeId keep, NodeId drop);

  Objects& objects_;
  std::deque<Node> nodes_;
  mutable std::vector<NodeId> parent_;
  size_t queued_ = 0;
  std::unordered_map<LocationId, NodeId> cells_;
  std::unordered_map<ObjectId, Whole> wholes_;
  std::unordered_map<ObjectId, std::vector<LocationId>> object_cells_;
  std::unordered_map<ObjectId, std::vector<Subscriber>> subscribers_;
  std::unordered_set<uint64_t> edges_, copied_;
  std::vector<MemoryCopy> memory_copies_;
};

}  // namespace stem::analysis
