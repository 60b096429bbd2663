/* Reading from outside (nondet_io.c): what read, recv, fread, getline ... have in common. */
#ifndef STEM_TRACER_RUNTIME_NONDET_IO_H
#define STEM_TRACER_RUNTIME_NONDET_IO_H

#include "tracer/runtime/lib.h"

/* Where bytes come from. */
struct lib_source {
  int fd;
  bool moves;   /* reading advances the position of the file */
  int64_t at;   /* moves == false: the position asked for */
  void* stream; /* FILE*, or 0 */
  bool own;     /* `to` is memory of the model's: no events; the id of a single input byte is left in __stem_tls.result_id */
};

/* At most n bytes from `source` into the program's memory at `to`; `world` does it for real, into the buffer it is given, and
 * returns how many there are (0: end, -1: errno). Recorded, fed back, an input if the source is declared one; lets others run
 * while it blocks. Only where lib_live(). */
int64_t lib_receive(const struct lib_call* call, const char* what, struct lib_source source, void* to, size_t n, lib_world world,
                    void* context);

/* Runs `world` with the token given away if the descriptor is not ready for `events` (POLLIN, POLLOUT). */
int64_t lib_outside(int fd, short events, lib_world world, void* context, void* bytes);

/* The same for a stream from which n bytes are wanted: what is in its buffer needs no waiting. */
int64_t lib_outside_stream(void* stream, size_t n, lib_world world, void* context, void* bytes);

/* Replay: the descriptor that a recorded open, socket or accept gave; the real one becomes it, or a dummy does when there is none
 * (real < 0). Returns what the program must be told. */
int lib_descriptor(int real, int64_t recorded, const void* site);

bool lib_is_regular(int fd);
void lib_opened(int fd, const char* path); /* --symbolic-file */
void lib_closed(int fd);

#endif
