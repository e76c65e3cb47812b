/* A backend makes itself ready (fa_backend.prepare) while a first case's data are made: opening a GPU's
 * context takes longer than that.
 *
 * The driver opens contexts one after another whoever asks, and processes that wait for it inside burn
 * processor time. So workers take turns: the first begin while the last still wait, instead of all when the
 * last context is open. */
#ifndef FA_FUZZ_ONE_PREPARING_H
#define FA_FUZZ_ONE_PREPARING_H

#include "fuzz/one/turns.h"
#include "gpu/backend.h"

#include <pthread.h>

/* So many at a time: fewer leave the driver idle while a process does what needs no turn in it. */
#define FA_PREPARING_AT_ONCE 4

/* Zeroed: nothing is under way. It does not survive a fork, so only for a process that makes no workers
 * after. */
typedef struct fa_preparing {
  const fa_backend *backend;
  void *self;
  const fa_process_slots *turns;
  double patience_s;
  pthread_t thread;
  bool running;
} fa_preparing;

/* Returns at once. Where there is nothing to prepare, or no thread to be had, the backend does it when
 * needed. turns, which outlive the preparing: NULL, or waited for up to patience_s. */
void fa_preparing_begin(fa_preparing *p, const fa_backend *backend, void *self, const fa_process_slots *turns,
                        double patience_s);
/* Until it is done. NULL, or nothing begun: returns at once. */
void fa_preparing_wait(fa_preparing *p);

#endif
