/* Private to fuzz/workers: one process of a pool. */
#ifndef FA_FUZZ_WORKERS_PROCESS_H
#define FA_FUZZ_WORKERS_PROCESS_H

#include "fuzz/workers/pool.h"

#include <sys/types.h>

/* What a lane works on: an item in its place in the order of next(). */
typedef struct fa_worker_job {
  int64_t slot; /* -1: nothing */
  int64_t item;
  double started;
} fa_worker_job;

typedef struct fa_worker {
  pid_t pid;    /* 0 = not running */
  int to, from; /* pipe ends on this side; to: -1 once it is dismissed */
  int n_lanes;
  fa_worker_job job[FA_POOL_MAX_LANES]; /* of the first n_lanes; any of them may have it */
  char *bytes;                          /* the answer so far: its head, then the packed result */
  size_t n_bytes, capacity;
} fa_worker;

/* Before a packed result. */
typedef struct fa_worker_answer {
  uint64_t n_bytes;
  int64_t slot;
  uint64_t spent; /* 1: the process can run nothing more */
} fa_worker_answer;

/* Starts w, one of the n of all. */
fa_status fa_worker_start(const fa_pool_config *c, int n_lanes, fa_worker *all, int n, fa_worker *w,
                          fa_error *err);
/* Sends no more work: the worker ends by itself, and fa_worker_stop waits for that. Ending takes as long as
 * freeing memory and a device's context, so to stop several, dismiss all of them first. */
void fa_worker_dismiss(fa_worker *w);
/* Waits for its end; kill_it: kills it first. Returns the wait status; 0 if it was not running. */
int fa_worker_stop(fa_worker *w, bool kill_it);
/* To a lane that has nothing to do. If it no longer reads, the end of its answers will tell why. */
void fa_worker_assign(fa_worker *w, int64_t slot, int64_t item);
/* What works on the slot; NULL: nothing of it does. */
fa_worker_job *fa_worker_job_of(fa_worker *w, int64_t slot);
int fa_worker_n_busy(const fa_worker *w);

#endif
