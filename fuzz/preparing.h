/* A backend makes itself ready (fa_backend.prepare) while a first case's data are made: opening a GPU's
 * context takes longer than that, and the more processes do it at once, the longer. */
#ifndef FA_FUZZ_PREPARING_H
#define FA_FUZZ_PREPARING_H

#include "gpu/backend.h"

#include <pthread.h>

/* Zeroed: nothing is under way. It does not survive a fork, so only for a process that makes no workers
 * after. */
typedef struct fa_preparing {
  const fa_backend *backend;
  void *self;
  pthread_t thread;
  bool running;
} fa_preparing;

/* Returns at once. Where there is nothing to prepare, or no thread to be had, the backend does it when
 * needed. */
void fa_preparing_begin(fa_preparing *p, const fa_backend *backend, void *self);
/* Until it is done. NULL, or nothing begun: returns at once. */
void fa_preparing_wait(fa_preparing *p);

#endif
