#include "db/rows.h"

#include <algorithm>

#include "util/error.h"

namespace stem::db {

const char* state_name(State state) {
  switch (state) {
#define STEM_STATE(Name, text, cls) \
  case State::Name: return text;
#include "db/states.def"
  }
  return "?";
}

State state_from(const std::string& name) {
#define STEM_STATE(Name, text, cls) \
  if (name == text) return State::Name;
#include "db/states.def"
  throw InternalError("no such state: " + name);
}

const char* relation_name(Relation relation) {
  switch (relation) {
#define STEM_RELATION(Name, text) \
  case Relation::Name: return text;
#include "db/relations.def"
  }
  return "?";
}

const char* def_kind_name(DefKind kind) {
  switch (kind) {
    case DefKind::Write: return "write";
    case DefKind::Initial: return "initial";
    case DefKind::External: return "external";
  }
  return "?";
}

const char* bound_name(Bound bound) {
  switch (bound) {
    case Bound::None: return nullptr;
    case Bound::Window: return "window";
    case Bound::Trace: return "trace";
    case Bound::Program: return "program";
  }
  return nullptr;
}

size_t Observations::Hash::operator()(const Key& key) const {
  uint64_t h = key.a * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 29) ^ key.b) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 32) ^ key.c) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

void Observations::add(const Observation& o) {
  const Key key{uint64_t{o.pair.def_site} << 32 | o.pair.use_site, uint64_t{o.pair.variable} << 32 | o.def_thread,
                uint64_t{o.use_thread} << 2 | static_cast<uint64_t>(o.pair.def_kind)};
  const auto [at, fresh] = index_.try_emplace(key, rows_.size());
  if (fresh) {
    rows_.push_back(o);
    return;
  }
  Observation& row = rows_[at->second];
  row.count += o.count;
  row.relation = std::max(row.relation, o.relation);
}

}  // namespace stem::db
