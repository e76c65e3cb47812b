/* Prepares a backend (fa_backend.prepare) while the data of the first case are made, because opening a GPU's
 * context takes longer than that.
 *
 * The driver opens contexts one at a time, and processes that wait for it burn processor time. So workers
 * take turns: the first ones start while the last still wait, rather than all when the last context is
 * open. */
#ifndef FA_FUZZ_ONE_PREPARING_H
#define FA_FUZZ_ONE_PREPARING_H

#include "fuzz/one/turns.h"
#include "gpu/backend.h"

#include <pthread.h>

/* Number of turns at once. One opens a context in 0.1 to 0.4 s, and of three that opened theirs at once each took 2.0 to 2.3 s
 * (H200, driver 580). */
#define FA_PREPARING_AT_ONCE 1

/* Zeroed: nothing is in progress. It does not survive a fork: only for a process that forks no workers
 * afterwards. */
typedef struct fa_preparing {
  const fa_backend *backend;
  void *self;
  const fa_process_slots *turns;
  double patience_s;
  pthread_t thread;
  bool running;
} fa_preparing;

/* Returns at once. If there is nothing to prepare, or no thread can be started, the backend does it when
 * needed. turns: NULL, or waited for up to patience_s; they must outlive the preparing. */
void fa_preparing_begin(fa_preparing *p, const fa_backend *backend, void *self, const fa_process_slots *turns,
                        double patience_s);
/* Waits until it is done. NULL, or nothing started: returns at once. */
void fa_preparing_wait(fa_preparing *p);

#endif
