#include "tracer/pass/library.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/Function.h>

using namespace llvm;

namespace stem::pass {

namespace {

struct Allocator {
  const char* name;
  int size, count;
  bool zeroing;
};

constexpr Allocator kAllocators[] = {
    {"malloc", 0, -1, false}, {"calloc", 0, 1, true}, {"aligned_alloc", 1, -1, false}, {"memalign", 1, -1, false}, {"valloc", 0, -1, false}, {"pvalloc", 0, -1, false},
    {"_Znwm", 0, -1, false}, {"_Znam", 0, -1, false}, {"_ZnwmRKSt9nothrow_t", 0, -1, false}, {"_ZnamRKSt9nothrow_t", 0, -1, false},
    {"_ZnwmSt11align_val_t", 0, -1, false}, {"_ZnamSt11align_val_t", 0, -1, false}, {"_ZnwmSt11align_val_tRKSt9nothrow_t", 0, -1, false},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", 0, -1, false}};

const Allocator* allocator(const CallBase& call) {
  const Function* callee = library_callee(call);
  if (!callee || !call.getType()->isPointerTy()) return nullptr;
  for (const Allocator& a : kAllocators) {
    if (callee->getName() != a.name) continue;
    const unsigned last = static_cast<unsigned>(std::max(a.size, a.count));
    if (last >= call.arg_size() || !call.getArgOperand(a.size)->getType()->isIntegerTy()) return nullptr;
    return &a;
  }
  return nullptr;
}

const StringMap<Intercept>& intercepts() {
  static const StringMap<Intercept> table = [] {
    StringMap<Intercept> names;
    constexpr Intercept wrap = Intercept::Wrap, interpose = Intercept::Interpose;
#define STEM_INTERCEPT(name, how) names[#name] = how;
#include "tracer/runtime/intercepts.def"
    return names;
  }();
  return table;
}

}  // namespace

Function* library_callee(const CallBase& call) {
  Function* callee = call.getCalledFunction();
  return callee && callee->isDeclaration() && !callee->isIntrinsic() ? callee : nullptr;
}

bool is_allocation(const CallBase& call) { return allocator(call) != nullptr; }

bool is_zeroing(const CallBase& call) {
  const Allocator* a = allocator(call);
  return a && a->zeroing;
}

std::pair<int, int> size_arguments(const CallBase& call) {
  const Allocator* a = allocator(call);
  return a ? std::pair{a->size, a->count} : std::pair{-1, -1};
}

bool is_release(const CallBase& call) {
  const Function* callee = library_callee(call);
  if (!callee || call.arg_size() == 0 || !call.getArgOperand(0)->getType()->isPointerTy()) return false;
  const StringRef name = callee->getName();
  return name == "free" || name == "cfree" || name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv");
}

bool is_posix_memalign(const CallBase& call) {
  const Function* callee = library_callee(call);
  return callee && callee->getName() == "posix_memalign" && call.arg_size() == 3 && call.getType()->isIntegerTy(32) &&
         call.getArgOperand(0)->getType()->isPointerTy() && call.getArgOperand(2)->getType()->isIntegerTy(64);
}

bool is_assertion_failure(const CallBase& call) {
  const Function* callee = library_callee(call);
  if (!callee) return false;
  const StringRef name = callee->getName();
  return name == "__assert_fail" || name == "__assert" || name == "__assert_perror_fail" || name == "_ZSt21__glibcxx_assert_failPKciS0_S0_";
}

bool only_synchronises(const Function& function) {
  const StringRef name = function.getName();
  if (name.contains("get") || name.contains("attr")) return false;  // pthread_getname_np, pthread_attr_getstack: they answer behind a pointer
  return any_of(ArrayRef{"pthread_", "sem_", "mtx_", "cnd_", "thrd_", "tss_", "call_once", "__cxa_", "__stem_"}, [&](const char* prefix) { return name.starts_with(prefix); });
}

Intercept intercepted(StringRef name) {
  const auto found = intercepts().find(name);
  return found == intercepts().end() ? Intercept::No : found->second;
}

}  // namespace stem::pass
