/* Private to fuzz/workers: one process of a pool. */
#ifndef FA_FUZZ_WORKERS_PROCESS_H
#define FA_FUZZ_WORKERS_PROCESS_H

#include "fuzz/workers/pool.h"

#include <sys/types.h>

typedef struct fa_worker {
  pid_t pid;    /* 0 = not running */
  int to, from; /* pipe ends on this side; to: -1 once it is dismissed */
  int64_t slot; /* what it works on: position in the order of next(), -1 = idle */
  double started;
  char *bytes; /* the answer so far: 8 bytes of length (and FA_WORKER_SPENT), then the packed result */
  size_t n_bytes, capacity;
} fa_worker;

/* Bit in an answer's length: the worker exits after it. */
#define FA_WORKER_SPENT ((uint64_t)1 << 63)

/* Starts w, one of the pool's c->n_workers. */
fa_status fa_worker_start(const fa_pool_config *c, fa_worker *all, fa_worker *w, fa_error *err);
/* Sends no more work: the worker ends by itself, and fa_worker_stop waits for that. Ending takes as long as
 * freeing memory and a device's context, so to stop several, dismiss all of them first. */
void fa_worker_dismiss(fa_worker *w);
/* Waits for its end; kill_it: kills it first. Returns the wait status; 0 if it was not running. */
int fa_worker_stop(fa_worker *w, bool kill_it);
/* False: it no longer reads; the end of its answers will tell why. */
bool fa_worker_assign(fa_worker *w, int64_t item);

#endif
