/* Waiting for the outside, and sockets: poll, select, epoll, accept, connect, recv, send, and children. What blocks lets others
 * run. On replay nothing is waited for and no peer is talked to: the answers are those of the recorded run. */
#include "tracer/runtime/nondet_io.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/runtime/sys.h"

/* --- readiness: first a look without waiting, then outside. Nothing ready at the end is a Yield. ------------------------------------- */

typedef int (*look)(void* context, bool wait);

static int ready(const struct lib_call* call, const char* what, look at, void* context, void* bytes, size_t n) {
  struct stem_thread* self = stem_current;
  struct lib_answer answer = {0, 0, 0, 0};
  if (lib_fed(what, call->site, &answer)) {
    memcpy(bytes, answer.bytes, answer.size < n ? answer.size : n);
  } else {
    errno = 0;
    answer.result = at(context, false);
    if (answer.result == 0) {
      {
        STEM_OUTSIDE(self);
        answer.result = at(context, true);
        answer.error = errno;
      }
      self->library[LIB_BLOCKED] = 1;
    }
    if (answer.result < 0) answer.error = errno;
  }
  lib_record(what, answer.result, answer.error, bytes, n, call->site);
  if (answer.result == 0) stem_sleep_until(self, 0, call->site);
  if (answer.error) errno = answer.error;
  return (int)answer.result;
}

struct poll_question {
  struct pollfd* fds;
  nfds_t n;
  int timeout;
};

static int look_poll(void* context, bool wait) {
  struct poll_question* q = context;
  return STEM_REAL(poll)(q->fds, q->n, wait ? q->timeout : 0);
}

static uint64_t milliseconds(int n) { return (uint64_t)n * 1000000; }

STEM_EXPORT int poll(struct pollfd* fds, nfds_t n, int timeout) {
  struct lib_call call = lib_enter(poll);
  LIB_PIN(call, 0, fds), LIB_PIN(call, 1, n), LIB_PIN32(call, 2, timeout);
  if (!lib_live()) return STEM_REAL(poll)(fds, n, timeout);
  if (n == 0 && timeout >= 0) { /* a way to sleep */
    stem_sleep_until(stem_self(), stem_deadline_in(milliseconds(timeout)), call.site);
    return 0;
  }
  size_t size = n * sizeof *fds;
  struct pollfd small[16];
  struct pollfd* copy = n <= 16 ? small : stem_pages(size);
  if (call.site)
    lib_read(copy, fds, size, call.site);
  else
    memcpy(copy, fds, size);
  struct poll_question q = {copy, n, timeout};
  int result = ready(&call, "poll", look_poll, &q, copy, size);
  for (nfds_t i = 0; result >= 0 && i < n; i++) lib_give(&call, &fds[i].revents, &copy[i].revents, sizeof copy[i].revents);
  int error = errno;
  if (copy != small) stem_pages_free(copy, size);
  errno = error;
  lib_leave(poll, 0);
  return result;
}

struct select_question {
  int n;
  bool has[3];
  fd_set asked[3];
  fd_set sets[3];
  struct timeval* timeout;
};

static int look_select(void* context, bool wait) {
  struct select_question* q = context;
  struct timeval none = {0, 0}, limit = q->timeout ? *q->timeout : none;
  memcpy(q->sets, q->asked, sizeof q->sets);
  return STEM_REAL(select)(q->n, q->has[0] ? &q->sets[0] : 0, q->has[1] ? &q->sets[1] : 0, q->has[2] ? &q->sets[2] : 0,
                           !wait ? &none : q->timeout ? &limit : 0);
}

STEM_EXPORT int select(int n, fd_set* reads, fd_set* writes, fd_set* excepts, struct timeval* timeout) {
  struct lib_call call = lib_enter(select);
  LIB_PIN32(call, 0, n), LIB_PIN(call, 1, reads), LIB_PIN(call, 2, writes), LIB_PIN(call, 3, excepts), LIB_PIN(call, 4, timeout);
  if (!lib_live() || n < 0 || n > FD_SETSIZE) return STEM_REAL(select)(n, reads, writes, excepts, timeout);
  struct timeval limit = {0, 0};
  if (timeout && call.site)
    lib_read(&limit, timeout, sizeof limit, call.site);
  else if (timeout)
    limit = *timeout;
  fd_set* sets[3] = {reads, writes, excepts};
  if (!reads && !writes && !excepts && timeout) {
    stem_sleep_until(stem_self(), stem_deadline_in((uint64_t)limit.tv_sec * 1000000000u + (uint64_t)limit.tv_usec * 1000), call.site);
    return 0;
  }
  struct select_question q = {n, {reads, writes, excepts}, {{{0}}}, {{{0}}}, timeout ? &limit : 0};
  size_t size = ((size_t)n + 63) / 64 * 8;
  for (int i = 0; i < 3; i++) {
    if (sets[i] && call.site)
      lib_read(&q.asked[i], sets[i], size, call.site);
    else if (sets[i])
      memcpy(&q.asked[i], sets[i], size);
  }
  int result = ready(&call, "select", look_select, &q, q.sets, sizeof q.sets);
  for (int i = 0; result >= 0 && i < 3; i++)
    if (sets[i]) lib_give(&call, sets[i], &q.sets[i], size);
  lib_leave(select, 0);
  return result;
}

struct epoll_question {
  int fd;
  struct epoll_event* events;
  int n;
  int timeout;
};

static int look_epoll(void* context, bool wait) {
  struct epoll_question* q = context;
  return STEM_REAL(epoll_wait)(q->fd, q->events, q->n, wait ? q->timeout : 0);
}

STEM_EXPORT int epoll_wait(int fd, struct epoll_event* events, int n, int timeout) {
  struct lib_call call = lib_enter(epoll_wait);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, events), LIB_PIN32(call, 2, n), LIB_PIN32(call, 3, timeout);
  if (!lib_live() || n <= 0) return STEM_REAL(epoll_wait)(fd, events, n, timeout);
  size_t size = (size_t)n * sizeof *events;
  struct epoll_event* copy = stem_pages(size);
  struct epoll_question q = {fd, copy, n, timeout};
  int result = ready(&call, "epoll_wait", look_epoll, &q, copy, size);
  if (result > 0) lib_give(&call, events, copy, (size_t)result * sizeof *events);
  int error = errno;
  stem_pages_free(copy, size);
  errno = error;
  lib_leave(epoll_wait, 0);
  return result;
}

/* --- connections ---------------------------------------------------------------------------------------------------------------------- */

struct accept_question {
  int fd;
  int flags;
  socklen_t size;
};

struct peer {
  socklen_t size;
  struct sockaddr_storage address;
};

static int64_t ask_accept(void* context, void* bytes) {
  struct accept_question* q = context;
  struct peer* peer = bytes;
  peer->size = sizeof peer->address;
  return STEM_REAL(accept4)(q->fd, (struct sockaddr*)&peer->address, &peer->size, q->flags);
}

static void give_peer(const struct lib_call* call, const struct peer* peer, void* address, socklen_t* size) {
  if (!address || !size) return;
  lib_give(call, address, &peer->address, *size < peer->size ? *size : peer->size);
  lib_give(call, size, &peer->size, sizeof *size);
}

static int accepted(const struct lib_call* call, int fd, void* address, socklen_t* size, int flags) {
  struct peer peer;
  memset(&peer, 0, sizeof peer);
  struct accept_question q = {fd, flags, 0};
  struct lib_answer answer = {-1, 0, 0, 0};
  if (lib_fed("accept", call->site, &answer)) {
    memcpy(&peer, answer.bytes, answer.size < sizeof peer ? answer.size : sizeof peer);
    answer.result = lib_descriptor(-1, answer.result, call->site);
  } else {
    errno = 0;
    answer.result = lib_outside(fd, POLLIN, ask_accept, &q, &peer);
    answer.error = answer.result < 0 ? errno : 0;
  }
  lib_record("accept", answer.result, answer.error, &peer, sizeof peer, call->site);
  if (answer.result >= 0) give_peer(call, &peer, address, size);
  if (answer.error) errno = answer.error;
  return (int)answer.result;
}

STEM_EXPORT int accept(int fd, struct sockaddr* restrict address, socklen_t* restrict size) {
  struct lib_call call = lib_enter(accept);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, address), LIB_PIN(call, 2, size);
  int result = lib_live() ? accepted(&call, fd, address, size, 0) : STEM_REAL(accept)(fd, address, size);
  lib_leave(accept, 0);
  return result;
}

STEM_EXPORT int accept4(int fd, struct sockaddr* restrict address, socklen_t* restrict size, int flags) {
  struct lib_call call = lib_enter(accept4);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, address), LIB_PIN(call, 2, size), LIB_PIN32(call, 3, flags);
  int result = lib_live() ? accepted(&call, fd, address, size, flags) : STEM_REAL(accept4)(fd, address, size, flags);
  lib_leave(accept4, 0);
  return result;
}

struct connect_question {
  int fd;
  const struct sockaddr* address;
  socklen_t size;
};

static int64_t do_connect(void* context, void* bytes) {
  struct connect_question* q = context;
  struct stem_thread* self = stem_current;
  if (!lib_live()) return STEM_REAL(connect)(q->fd, q->address, q->size);
  int result, error;
  {
    STEM_OUTSIDE(self);
    result = STEM_REAL(connect)(q->fd, q->address, q->size);
    error = errno;
  }
  self->library[LIB_BLOCKED] = 1;
  errno = error;
  return result;
}

STEM_EXPORT int connect(int fd, const struct sockaddr* address, socklen_t size) {
  struct lib_call call = lib_enter(connect);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, address), LIB_PIN32(call, 2, size);
  if (call.site && lib_live()) stem_read_range(address, size, call.site);
  struct connect_question q = {fd, address, size};
  int result = (int)lib_ask(&call, "connect", 0, 0, do_connect, &q);
  lib_leave(connect, 0);
  return result;
}

/* --- messages ---------------------------------------------------------------------------------------------------------------------- */

struct message {
  int fd;
  void* at;
  size_t n;
  int flags;
  struct peer* peer;
};

static int64_t ask_recv(void* context, void* bytes) {
  struct message* m = context;
  if (!m->peer) return STEM_REAL(recv)(m->fd, bytes, m->n, m->flags);
  m->peer->size = sizeof m->peer->address;
  return STEM_REAL(recvfrom)(m->fd, bytes, m->n, m->flags, (struct sockaddr*)&m->peer->address, &m->peer->size);
}

STEM_EXPORT ssize_t recv(int fd, void* to, size_t n, int flags) {
  struct lib_call call = lib_enter(recv);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n), LIB_PIN32(call, 3, flags);
  if (!lib_live()) return STEM_REAL(recv)(fd, to, n, flags);
  struct message m = {fd, 0, n, flags, 0};
  ssize_t result = (ssize_t)lib_receive(&call, "recv", (struct lib_source){.fd = fd, .moves = true}, to, n, ask_recv, &m);
  lib_leave(recv, 0);
  return result;
}

static int64_t same(void* context, void* bytes) { return 0; }

STEM_EXPORT ssize_t recvfrom(int fd, void* to, size_t n, int flags, struct sockaddr* restrict address, socklen_t* restrict size) {
  struct lib_call call = lib_enter(recvfrom);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, to), LIB_PIN(call, 2, n), LIB_PIN32(call, 3, flags), LIB_PIN(call, 4, address);
  LIB_PIN(call, 5, size);
  if (!lib_live()) return STEM_REAL(recvfrom)(fd, to, n, flags, address, size);
  struct peer peer;
  memset(&peer, 0, sizeof peer);
  struct message m = {fd, 0, n, flags, &peer};
  ssize_t result = (ssize_t)lib_receive(&call, "recvfrom", (struct lib_source){.fd = fd, .moves = true}, to, n, ask_recv, &m);
  int error = errno;
  lib_ask(&call, "recvfrom.address", &peer, sizeof peer, same, 0);
  if (result >= 0) give_peer(&call, &peer, address, size);
  errno = error;
  lib_leave(recvfrom, 0);
  return result;
}

static int64_t do_send(void* context, void* bytes) {
  struct message* m = context;
  if (!m->peer) return STEM_REAL(send)(m->fd, m->at, m->n, m->flags);
  return STEM_REAL(sendto)(m->fd, m->at, m->n, m->flags, (struct sockaddr*)&m->peer->address, m->peer->size);
}

static int64_t sent(const struct lib_call* call, const char* what, struct message* m) {
  if (call->site) stem_read_range(m->at, m->n, call->site);
  struct lib_answer answer = {0, 0, 0, 0};
  if (!lib_fed(what, call->site, &answer)) {
    errno = 0;
    answer.result = lib_outside(m->fd, POLLOUT, do_send, m, 0);
    answer.error = errno;
  }
  lib_record(what, answer.result, answer.error, 0, 0, call->site);
  if (answer.error) errno = answer.error;
  return answer.result;
}

STEM_EXPORT ssize_t send(int fd, const void* from, size_t n, int flags) {
  struct lib_call call = lib_enter(send);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n), LIB_PIN32(call, 3, flags);
  if (!lib_live()) return STEM_REAL(send)(fd, from, n, flags);
  struct message m = {fd, (void*)from, n, flags, 0};
  ssize_t result = (ssize_t)sent(&call, "send", &m);
  lib_leave(send, 0);
  return result;
}

STEM_EXPORT ssize_t sendto(int fd, const void* from, size_t n, int flags, const struct sockaddr* address, socklen_t size) {
  struct lib_call call = lib_enter(sendto);
  LIB_PIN32(call, 0, fd), LIB_PIN(call, 1, from), LIB_PIN(call, 2, n), LIB_PIN32(call, 3, flags), LIB_PIN(call, 4, address);
  if (!lib_live() || size > sizeof(struct sockaddr_storage)) return STEM_REAL(sendto)(fd, from, n, flags, address, size);
  struct peer peer;
  memset(&peer, 0, sizeof peer);
  peer.size = size;
  if (address) memcpy(&peer.address, address, size);
  struct message m = {fd, (void*)from, n, flags, address ? &peer : 0};
  ssize_t result = (ssize_t)sent(&call, "sendto", &m);
  lib_leave(sendto, 0);
  return result;
}

/* --- children: really waited for, also on replay, because they really run; then for the one that came in the recorded run -------------- */

static pid_t waited(const struct lib_call* call, pid_t pid, int* status, int options) {
  struct stem_thread* self = stem_current;
  struct lib_answer answer = {0, 0, 0, 0};
  int how = 0, wait = !(options & WNOHANG);
  bool fed = lib_fed("waitpid", call->site, &answer);
  bool blocked = self->library[LIB_BLOCKED]; /* whether it blocked is the recorded run's business */
  if (pid > 0) pid = lib_real_child(pid);
  if (fed && answer.result > 0) {
    pid = lib_real_child((pid_t)answer.result);
    wait = 1;
  }
  pid_t result = fed && answer.result == 0 ? 0 : STEM_REAL(waitpid)(pid, &how, options | WNOHANG);
  if (result == 0 && wait) {
    int error;
    {
      STEM_OUTSIDE(self);
      result = STEM_REAL(waitpid)(pid, &how, options & ~WNOHANG);
      error = errno;
    }
    self->library[LIB_BLOCKED] = 1;
    errno = error;
  }
  int error = errno;
  if (fed) self->library[LIB_BLOCKED] = blocked;
  if (result > 0) result = lib_told_child(result);
  lib_record("waitpid", result, result < 0 ? error : 0, &how, sizeof how, call->site);
  if (result > 0 && status) lib_give(call, status, &how, sizeof how);
  errno = error;
  return result;
}

STEM_EXPORT pid_t waitpid(pid_t pid, int* status, int options) {
  struct lib_call call = lib_enter(waitpid);
  LIB_PIN32(call, 0, pid), LIB_PIN(call, 1, status), LIB_PIN32(call, 2, options);
  pid_t result = lib_live() ? waited(&call, pid, status, options) : STEM_REAL(waitpid)(pid, status, options);
  lib_leave(waitpid, 0);
  return result;
}

STEM_EXPORT pid_t wait(int* status) {
  struct lib_call call = lib_enter(wait);
  LIB_PIN(call, 0, status);
  pid_t result = lib_live() ? waited(&call, -1, status, 0) : STEM_REAL(waitpid)(-1, status, 0);
  lib_leave(wait, 0);
  return result;
}
