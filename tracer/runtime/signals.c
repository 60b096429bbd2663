/* Asynchronous signals: noted when they arrive, delivered at the thread's next visible operation, recorded, and delivered at
 * the same place on replay.
 *
 * The program's handlers are kept here and ours is installed instead. It only notes the signal; the scheduler then calls
 * stem_signals_deliver, which runs the handler between SignalIn and SignalOut like a call that the thread made. A signal that a
 * thread sends to itself (raise) is no surprise and runs its handler at once. Signals that tell of an error of the thread
 * itself (SIGSEGV ...) belong to fault.c. On replay, real signals are ignored while the schedule is followed: each delivery was
 * recorded with the number of visible operations before it, and the scheduler asks us at that number.
 * Handlers get the siginfo that came, and an empty context. */
#include "tracer/runtime/signals.h"

#include <string.h>
#include <ucontext.h>

#include "tracer/runtime/lib.h"
#include "tracer/runtime/state.h"
#include "tracer/runtime/sys.h"

#define SIGNALS 65

static struct sigaction actions[SIGNALS]; /* what the program wants */
static struct stem_lock lock;

static uint64_t bit(int sig) { return 1ull << (sig - 1); }

static bool is_handler(const struct sigaction* a) { return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN; }

static uint64_t blocked_now(void) {
  uint64_t mask = 0;
  stem_sys4(SYS_rt_sigprocmask, SIG_BLOCK, 0, &mask, 8);
  return mask;
}

/* --- arrival ------------------------------------------------------------------------------------------------------------------------- */

static void make_ready(struct stem_thread* t) {
  if (!__atomic_exchange_n(&t->signal_ready, 1, __ATOMIC_ACQ_REL)) __atomic_fetch_add(&stem_signals_pending, 1, __ATOMIC_ACQ_REL);
}

static void make_unready(struct stem_thread* t) {
  if (__atomic_exchange_n(&t->signal_ready, 0, __ATOMIC_ACQ_REL)) __atomic_fetch_sub(&stem_signals_pending, 1, __ATOMIC_ACQ_REL);
}

static void note(struct stem_thread* t, int sig, const siginfo_t* info) {
  siginfo_t* infos = (siginfo_t*)(uintptr_t)t->library[LIB_INFOS];
  if (!infos) {
    infos = stem_pages(SIGNALS * sizeof *infos);
    t->library[LIB_INFOS] = (uint64_t)(uintptr_t)infos;
  }
  infos[sig] = *info;
  __atomic_fetch_or(&t->library[LIB_PENDING], bit(sig), __ATOMIC_ACQ_REL);
  make_ready(t);
}

static void call_handler(int sig, siginfo_t* info, void* context) {
  struct sigaction* a = &actions[sig];
  if (a->sa_flags & SA_SIGINFO)
    a->sa_sigaction(sig, info, context);
  else if (is_handler(a))
    a->sa_handler(sig);
}

static bool replaying(void) { return stem_mode == STEM_MODE_GUIDED && lib_feeding(); }

/* A thread so young that it does not know itself yet: its creator does. */
static struct stem_thread* newborn(void) {
  pthread_t handle = pthread_self();
  for (uint32_t i = 0; i < stem_thread_count; i++) {
    struct stem_thread* t = stem_thread_at(i);
    if (pthread_equal(t->handle, handle) && t->state != STEM_THREAD_ENDED) return t;
  }
  return 0;
}

static void arrived(int sig, siginfo_t* info, void* context) {
  if (stem_on && replaying()) return;
  struct stem_thread* self = stem_current || !stem_on ? stem_current : newborn();
  if (!stem_on || !self) {
    call_handler(sig, info, context);
    return;
  }
  note(self, sig, info);
  /* Inline code of the holder looks at the countdown and the limit only; the countdown is its own to change. With no room left
   * it calls, and the slow path starts a new chunk. */
  if (!stem_parallel && stem_sched.holder == self) __stem_hot.limit = 0;
}

/* --- delivery ------------------------------------------------------------------------------------------------------------------------- */

/* How many visible operations there were. */
static uint64_t operations(void) { return stem_sched.operations + (uint64_t)(stem_sched.granted - __stem_hot.countdown); }

static void run(struct stem_thread* self, int sig, siginfo_t* info, bool asynchronous) {
  struct sigaction action = actions[sig];
  if (!is_handler(&action)) return;
  if (action.sa_flags & SA_RESETHAND) actions[sig].sa_handler = SIG_DFL, actions[sig].sa_flags &= ~SA_SIGINFO;
  self->busy++; /* one at a time */
  stem_visible(self, STEM_KIND_SignalIn, 0, 0, 0, 0, 0);
  stem_event(self, STEM_KIND_SignalIn, 0, 0, (uint64_t)sig, 0, 0);
  stem_done(self);
  self->busy--;
  if (asynchronous) {
    struct lib_answer answer;
    uint64_t before = stem_parallel ? 0 : operations() - 1;
    lib_fed("signal", 0, &answer);
    lib_record("signal", sig, 0, &before, sizeof before, 0);
  }
  uint64_t mask = 0, old = 0;
  memcpy(&mask, &action.sa_mask, sizeof mask);
  if (!(action.sa_flags & SA_NODEFER)) mask |= bit(sig);
  stem_sys4(SYS_rt_sigprocmask, SIG_BLOCK, &mask, &old, 8);
  struct stem_tls keep = __stem_tls;
  int error = errno;
  __stem_tls.callee = __stem_tls.returner = __stem_tls.site = 0;
  ucontext_t context;
  memset(&context, 0, sizeof context);
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(sig, info, &context);
  else
    action.sa_handler(sig);
  errno = error;
  keep.next_id = __stem_tls.next_id;
  keep.shadow_live = __stem_tls.shadow_live;
  __stem_tls = keep;
  stem_sys4(SYS_rt_sigprocmask, SIG_SETMASK, &old, 0, 8);
  stem_event(self, STEM_KIND_SignalOut, 0, 0, (uint64_t)sig, 0, 0);
}

void stem_signals_deliver(struct stem_thread* self) {
  for (;;) {
    make_unready(self); /* before looking, so that one that comes meanwhile is not lost */
    uint64_t ready = __atomic_load_n(&self->library[LIB_PENDING], __ATOMIC_ACQUIRE) & ~blocked_now();
    if (!ready) return;
    int sig = __builtin_ctzll(ready) + 1;
    __atomic_fetch_and(&self->library[LIB_PENDING], ~bit(sig), __ATOMIC_ACQ_REL);
    siginfo_t info = ((siginfo_t*)(uintptr_t)self->library[LIB_INFOS])[sig];
    run(self, sig, &info, true);
  }
}

/* --- replay: which signal is due where --------------------------------------------------------------------------------------------------- */

struct due {
  uint64_t before; /* visible operations */
  uint32_t thread; /* index in the plan */
  int sig;
};

static struct due* due;
static size_t due_count, due_next;

static void prepare(void) {
  size_t n = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (const struct stem_plan_item* item = 0; (item = stem_plan_next(STEM_PLAN_FEED, item));) {
      const char* bytes = stem_plan_bytes(item);
      static const char kind[] = "signal";
      if (item->size != 4 + sizeof kind + 12 + 8 || memcmp(bytes + 4, kind, sizeof kind) != 0) continue;
      if (pass == 0) {
        n++;
        continue;
      }
      struct due d;
      int64_t sig;
      memcpy(&d.thread, bytes, 4);
      memcpy(&sig, bytes + 4 + sizeof kind, 8);
      memcpy(&d.before, bytes + 4 + sizeof kind + 12, 8);
      d.sig = sig > 0 && sig < SIGNALS ? (int)sig : 0;
      size_t at = due_count++;
      for (; at && due[at - 1].before > d.before; at--) due[at] = due[at - 1];
      due[at] = d;
    }
    if (pass == 0 && n) due = stem_pages(n * sizeof *due);
  }
  if (!due_count) return;
  stem_sched.signal_at = due[0].before;
  stem_account(); /* what the main thread was granted did not know of it: let it ask again */
  stem_sched.granted = __stem_hot.countdown = 0;
}

void stem_signals_due(void) {
  while (due_next < due_count && due[due_next].before <= stem_sched.operations) {
    struct due d = due[due_next++];
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = d.sig;
    for (uint32_t i = 0; d.sig && i < stem_thread_count; i++) {
      struct stem_thread* t = stem_thread_at(i);
      if (t->plan_index == d.thread && t->state != STEM_THREAD_ENDED) note(t, d.sig, &info);
    }
  }
  stem_sched.signal_at = due_next < due_count ? due[due_next].before : UINT64_MAX;
}

void lib_signals_init(void) {
  if (lib_feeding() && stem_mode == STEM_MODE_GUIDED) prepare();
}

/* --- what the program calls ---------------------------------------------------------------------------------------------------------------- */

static int install(int sig, const struct sigaction* action, struct sigaction* old) {
  if (sig < 1 || sig >= SIGNALS) {
    errno = EINVAL;
    return -1;
  }
  if (!stem_on) return STEM_REAL(sigaction)(sig, action, old);
  if (stem_fault_signal(sig)) {
    stem_fault_action(sig, action, old);
    return 0;
  }
  int result = 0;
  stem_lock(&lock);
  struct sigaction before = actions[sig];
  if (action) {
    struct sigaction ours = *action;
    if (is_handler(action)) {
      ours.sa_sigaction = arrived;
      ours.sa_flags = (action->sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO;
      sigfillset(&ours.sa_mask);
    }
    actions[sig] = *action;
    struct sigaction real;
    result = STEM_REAL(sigaction)(sig, &ours, &real);
    if (result < 0) actions[sig] = before;
    if (is_handler(&actions[sig]) != is_handler(&before)) stem_signal_handlers += is_handler(&before) ? -1u : 1u;
  }
  if (result == 0 && old) *old = before;
  stem_unlock(&lock);
  return result;
}

STEM_EXPORT int sigaction(int sig, const struct sigaction* restrict action, struct sigaction* restrict old) {
  struct lib_call call = lib_enter(sigaction);
  LIB_PIN32(call, 0, sig), LIB_PIN(call, 1, action), LIB_PIN(call, 2, old);
  struct sigaction before;
  memset(&before, 0, sizeof before);
  int result = install(sig, action, old ? &before : 0);
  if (result == 0 && old) lib_give(&call, old, &before, sizeof before);
  lib_leave(sigaction, 0);
  return result;
}

STEM_EXPORT sighandler_t signal(int sig, sighandler_t handler) {
  struct lib_call call = lib_enter(signal);
  LIB_PIN32(call, 0, sig), LIB_PIN(call, 1, handler);
  struct sigaction action, old;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  lib_leave(signal, 0);
  return install(sig, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

/* A signal that the thread sends itself: its handler runs before the call returns, with or without a replay. */
static bool to_itself(int sig) {
  struct stem_thread* self = stem_current;
  if (!lib_live() || sig < 1 || sig >= SIGNALS || stem_fault_signal(sig) || !is_handler(&actions[sig])) return false;
  if (blocked_now() & bit(sig)) return false;
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = sig;
  info.si_code = SI_TKILL;
  info.si_pid = stem_getpid();
  run(self, sig, &info, false);
  return true;
}

STEM_EXPORT int raise(int sig) {
  struct lib_call call = lib_enter(raise);
  LIB_PIN32(call, 0, sig);
  int result = to_itself(sig) ? 0 : STEM_REAL(raise)(sig);
  lib_leave(raise, 0);
  return result;
}

STEM_EXPORT int pthread_kill(pthread_t thread, int sig) {
  struct lib_call call = lib_enter(pthread_kill);
  LIB_PIN(call, 0, thread), LIB_PIN32(call, 1, sig);
  int result = pthread_equal(thread, pthread_self()) && to_itself(sig) ? 0 : STEM_REAL(pthread_kill)(thread, sig);
  lib_leave(pthread_kill, 0);
  return result;
}

/* On replay a process id may be the recorded one: our own is ours whatever its number. */
STEM_EXPORT int kill(pid_t pid, int sig) {
  struct lib_call call = lib_enter(kill);
  LIB_PIN32(call, 0, pid), LIB_PIN32(call, 1, sig);
  lib_leave(kill, 0);
  pid_t ours = stem_getpid();
  if (lib_live()) pid = pid == lib_recorded_pid() ? ours : pid > 0 ? lib_real_child(pid) : pid;
  if (pid == ours && lib_live() && stem_current->index == 0 && to_itself(sig)) return 0;
  return STEM_REAL(kill)(pid, sig);
}

STEM_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  struct lib_call call = lib_enter(pthread_sigmask);
  LIB_PIN32(call, 0, how), LIB_PIN(call, 1, set), LIB_PIN(call, 2, old);
  sigset_t before;
  memset(&before, 0, sizeof before);
  int result = STEM_REAL(pthread_sigmask)(how, set, &before);
  if (result == 0 && old) lib_give(&call, old, &before, sizeof before);
  if (lib_live() && stem_current->library[LIB_PENDING] & ~blocked_now()) make_ready(stem_current);
  lib_leave(pthread_sigmask, 0);
  return result;
}

STEM_EXPORT int sigprocmask(int how, const sigset_t* restrict set, sigset_t* restrict old) {
  struct lib_call call = lib_enter(sigprocmask);
  LIB_PIN32(call, 0, how), LIB_PIN(call, 1, set), LIB_PIN(call, 2, old);
  sigset_t before;
  memset(&before, 0, sizeof before);
  int result = STEM_REAL(sigprocmask)(how, set, &before);
  if (result == 0 && old) lib_give(&call, old, &before, sizeof before);
  int error = errno;
  if (lib_live() && stem_current->library[LIB_PENDING] & ~blocked_now()) make_ready(stem_current);
  errno = error;
  lib_leave(sigprocmask, 0);
  return result;
}
