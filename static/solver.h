// Inclusion constraints and their least solution (Andersen): every node has a set of locations it may point to, and a
// flag `unknown`: it may also point to every external object (objects.h), wherever that lies in it.
//
// What code we do not see knows is never a set: a node that is `unknown` leaves external objects out of its set, and a
// node that `escapes` makes everything it points to external. So libraries cost flags, not sets that all of them share.
//
// Wave propagation: in rounds, cycles of copies are collapsed (Tarjan, union-find) and what nodes have gained since
// their last visit is passed on once in topological order. A round costs the number of edges; a few dozen suffice for
// large programs, where looking for cycles edge by edge took minutes. Loads and stores go through one node per location
// (its cell); pointers that gain the same many locations at once share what follows from it, or a table that everybody
// can reach would cost its size for every pointer.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "static/objects.h"

namespace stem::analysis {

using NodeId = uint32_t;
using PointsTo = NumberSet;
constexpr NodeId kNoNode = UINT32_MAX;

class Solver {
 public:
  // What the builder of constraints wants to know; it may add nodes and constraints then.
  struct Listener {
    virtual ~Listener() = default;
    virtual void called(uint32_t call, ObjectId function) = 0;  // every function that a called pointer may be, once
    virtual void called_unknown(uint32_t call) = 0;             // it may be any external function
    virtual void exposed(ObjectId function) = 0;                // a function became external
  };

  explicit Solver(Objects& objects) : objects_(objects) {}

  NodeId add_node();
  void add_base(NodeId node, LocationId location);  // node points to location
  void add_copy(NodeId from, NodeId to);            // to includes from
  void add_load(NodeId pointer, NodeId to);         // to includes *pointer
  void add_store(NodeId pointer, NodeId from);      // *pointer includes from
  void add_move(NodeId from, NodeId to, int64_t offset, std::vector<uint64_t> strides, bool indexed);
  void add_copy_memory(NodeId to, NodeId from);  // memcpy
  void add_call(NodeId pointer, uint32_t call);
  void add_unknown(NodeId node);  // it may come from code we do not see
  void add_escape(NodeId node);   // code we do not see is given it
  void expose(ObjectId object);

  void solve(Listener& listener);

  const PointsTo& points_to(NodeId node) const { return nodes_[find(node)].all; }
  bool unknown(NodeId node) const { return nodes_[find(node)].unknown; }
  // What each part of an object may hold.
  void contents(ObjectId object, const std::function<void(const PointsTo&, bool unknown)>& tell) const;
  size_t node_count() const { return nodes_.size(); }

 private:
  struct Move {
    NodeId to;
    int64_t offset;
    std::vector<uint64_t> strides;
    bool indexed;
    uint32_t shape;  // a number for offset, strides and indexed
  };
  // What follows from pointing to a set of locations, once for all the pointers that gain the same set.
  struct Shared {
    NodeId loaded = kNoNode, stored = kNoNode;     // what any of them holds; what goes to each of them
    std::unordered_map<uint32_t, PointsTo> moved;  // by shape
  };
  struct Uses {  // of a pointer: most nodes have none
    std::vector<NodeId> loads, stores;
    std::vector<Move> moves;
    std::vector<uint32_t> copy_memory_to, copy_memory_from, calls;  // indices into memory_copies_; call ids
  };
  struct Node {
    PointsTo all, done;  // what it points to; what of that has been passed on
    NumberSet copies;
    std::unique_ptr<Uses> uses;
    bool unknown = false, unknown_done = false, escapes = false, escapes_done = false, queued = false;
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
  Uses& uses(NodeId node);
  void enqueue(NodeId node);
  void visit(NodeId node, Listener& listener);
  void use(Uses& uses, const PointsTo& fresh, bool unknown_fresh, Listener& listener);
  void use_many(Uses& uses, const PointsTo& fresh);
  NodeId loaded(Shared& shared, const PointsTo& from);
  NodeId stored(Shared& shared, const PointsTo& to);
  void add_bases(NodeId node, const PointsTo& locations);
  bool is_function(LocationId location) const;
  NodeId cell(LocationId location);         // of a known offset
  NodeId source_cell(LocationId location);  // where a load reads
  NodeId target_cell(LocationId location);  // where a store goes
  Whole whole(ObjectId object);
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
  std::unordered_set<uint64_t> copied_;
  std::vector<MemoryCopy> memory_copies_;
  std::vector<ObjectId> exposed_;  // functions, not told yet
  std::map<std::tuple<int64_t, std::vector<uint64_t>, bool>, uint32_t> shapes_;
  std::unordered_map<PointsTo, Shared, NumberSet::Hash> shared_;
};

}  // namespace stem::analysis
