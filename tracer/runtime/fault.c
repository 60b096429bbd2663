/* Signals that the program causes itself: SIGSEGV and its like. Caught from the start, on a stack of their own (a stack
 * overflow is one of them), so that the trace ends with what happened; then the program's own action follows, and if it has
 * none the default one, so that the exit status and the core file are what they would have been. */
#include <sys/mman.h>

#include "tracer/runtime/access.h"
#include "tracer/runtime/sys.h"

#define ALT_STACK (64u * 1024u)

static const int fault_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
#define FAULTS (sizeof fault_signals / sizeof *fault_signals)
static struct sigaction actions[FAULTS]; /* the program's own */

static int index_of(int sig) {
  for (unsigned i = 0; i < FAULTS; i++)
    if (fault_signals[i] == sig) return (int)i;
  return -1;
}

int stem_fault_signal(int sig) { return index_of(sig) >= 0; }

void stem_fault_action(int sig, const struct sigaction* action, struct sigaction* old) {
  int i = index_of(sig);
  struct sigaction before = actions[i];
  if (action) actions[i] = *action;
  if (old) *old = before;
}

/* The kernel's own structure: libc's sigaction may be interposed, and this must work from anywhere. */
struct kernel_action {
  void* handler;
  unsigned long flags;
  void* restorer;
  uint64_t mask;
};

__attribute__((naked)) static void restore(void) { __asm__("movq $15, %rax\n\tsyscall"); } /* rt_sigreturn */

static void install(int sig, void* handler, unsigned long flags) {
  struct kernel_action action = {handler, flags | 0x04000000 /* SA_RESTORER */, (void*)restore, 0};
  stem_sys4(SYS_rt_sigaction, sig, &action, 0, 8);
}

static void record_fault(struct stem_thread* self, int sig, const siginfo_t* info) {
  uint64_t address = sig == SIGSEGV || sig == SIGBUS ? (uint64_t)(uintptr_t)info->si_addr : 0;
  uint32_t site = 0;
  const struct stem_rec* begun = stem_parallel ? 0 : __stem_hot.cursor;
  if (self->faulting) {
    site = stem_site_id(self->faulting_site);
    if (!address) address = (uint64_t)(uintptr_t)self->faulting;
  } else if (begun && begun < __stem_hot.limit && address) {
    /* Inline code writes the head before it accesses: the record that was never finished tells the site. */
    uint64_t at = begun->head & 0xffffffffffffull, wanted = address & 0xffffffffffffull;
    if (wanted >= at && wanted < at + 8) site = begun->site;
  }
  if (stem_parallel) stem_access_abandon(self);
  stem_append(self, stem_head(STEM_KIND_Fault, 0, address), (uint64_t)sig, 0, site);
}

static void on_fault(int sig, siginfo_t* info, void* context) {
  int i = index_of(sig);
  struct sigaction* action = &actions[i];
  if ((action->sa_flags & SA_SIGINFO) ? action->sa_sigaction != 0 : action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
    void (*with_info)(int, siginfo_t*, void*) = action->sa_sigaction;
    void (*plain)(int) = action->sa_handler;
    int info_wanted = (action->sa_flags & SA_SIGINFO) != 0;
    if (action->sa_flags & (int)SA_RESETHAND) action->sa_handler = SIG_DFL;
    if (info_wanted)
      with_info(sig, info, context);
    else
      plain(sig);
    return;
  }
  if (action->sa_handler == SIG_IGN && info->si_code <= 0) return; /* sent, and ignored */
  struct stem_thread* self = stem_current;
  if (stem_on && self && (uint32_t)stem_getpid() == stem_owner_pid) {
    if (info->si_code > 0) record_fault(self, sig, info); /* else it was sent, by abort or kill: no access of ours */
    stem_finish(STEM_SIGNALLED, sig);
  }
  /* Back to the default action, and again: a fault happens anew on return, a sent signal is sent once more. */
  install(sig, 0, 0);
  if (info->si_code <= 0 || sig == SIGTRAP) stem_sys(SYS_tgkill, stem_getpid(), stem_gettid(), sig);
}

void stem_fault_thread(struct stem_thread* self) {
  stack_t now;
  if (stem_sys(SYS_sigaltstack, 0, &now, 0) == 0 && !(now.ss_flags & SS_DISABLE)) return; /* it has one */
  self->signal_stack = stem_pages(ALT_STACK);
  stack_t own = {.ss_sp = self->signal_stack, .ss_flags = 0, .ss_size = ALT_STACK};
  stem_sys(SYS_sigaltstack, &own, 0, 0);
}

void stem_fault_thread_end(struct stem_thread* self) {
  if (!self->signal_stack) return;
  stack_t now;
  if (stem_sys(SYS_sigaltstack, 0, &now, 0) == 0 && now.ss_sp == self->signal_stack) {
    stack_t none = {.ss_flags = SS_DISABLE};
    stem_sys(SYS_sigaltstack, &none, 0, 0);
  }
  stem_pages_free(self->signal_stack, ALT_STACK);
  self->signal_stack = 0;
}

void stem_fault_init(void) {
  for (unsigned i = 0; i < FAULTS; i++) {
    struct kernel_action old;
    stem_sys4(SYS_rt_sigaction, fault_signals[i], 0, &old, 8);
    if (old.handler == (void*)SIG_IGN) actions[i].sa_handler = SIG_IGN; /* inherited */
    install(fault_signals[i], (void*)on_fault, SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
  }
  stem_fault_thread(stem_current);
}
