#include "trace/event.h"

#include "util/error.h"

namespace stem::trace {

namespace {

struct KindRow {
  const char* text;
  bool visible;
};
constexpr KindRow kKinds[] = {
#define STEM_EVENT(Name, text, visible) {text, visible},
#include "trace/events.def"
};

struct OpRow {
  const char* text;
  int arity;
};
constexpr OpRow kOps[] = {
#define STEM_OP(Name, text, arity) {text, arity},
#include "trace/ops.def"
};

}  // namespace

const char* kind_name(Kind kind) { return kKinds[static_cast<size_t>(kind)].text; }
bool is_visible(Kind kind) { return kKinds[static_cast<size_t>(kind)].visible; }
const char* op_name(Op op) { return kOps[static_cast<size_t>(op)].text; }
int op_arity(Op op) { return kOps[static_cast<size_t>(op)].arity; }

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::Exited: return "exited";
    case Outcome::Signalled: return "signalled";
    case Outcome::Deadlock: return "deadlock";
    case Outcome::Livelock: return "livelock";
    case Outcome::Diverged: return "diverged";
    case Outcome::AssertFailed: return "assertion failed";
    case Outcome::Truncated: return "truncated";
  }
  STEM_CHECK(false);
}

}  // namespace stem::trace
