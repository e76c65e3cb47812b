/* A pool of worker processes, so that a subject that crashes, hangs or corrupts memory costs one case.
 *
 * Workers are forked before the first case and before this process has threads. Each receives item numbers
 * through a pipe and sends results back. A worker that dies or is late is replaced. If somebody killed it
 * (SIGKILL), its item is also restarted. Workers die with their parent.
 *
 * A worker may run several items at once, in threads ("lanes"). What goes wrong there may be another lane's
 * doing, so nothing of it is reported: the item is run again alone, in a worker of one lane, and so are all
 * that were under way in a worker that died, was late or is spent. What then happens is the result. Where
 * nothing happens, the first of them is an ERROR (fuzz/workers/suspects.h). */
#ifndef FA_FUZZ_WORKERS_POOL_H
#define FA_FUZZ_WORKERS_POOL_H

#include "report/result.h"

/* Results wait for their turn. This limits how far fast workers may run ahead of a slow case: some minutes on
 * a GPU, so that a hanging case costs no other worker's time. */
#define FA_POOL_MAX_PENDING 65536

#define FA_POOL_MAX_LANES 32 /* of a worker */

typedef struct fa_pool_config {
  int n_workers;    /* items at a time */
  int lanes;        /* of them in one process; 0 is 1 */
  double timeout_s; /* per item; <= 0: none */
  bool one_try;     /* a killed worker's item is not restarted: it is a crash */
  bool in_process;  /* no workers: items run in this process, one after another, without a timeout */
  void *ctx;        /* passed to every call below */
  /* In the parent: the next item; false once there are no more. */
  bool (*next)(void *ctx, int64_t *item);
  /* In a worker, before anything else; may be NULL. So many lanes it has. */
  void (*begin)(void *ctx, int n_lanes);
  /* In a worker: runs one item into an initialised result, in the thread of this lane. */
  void (*run)(void *ctx, int lane, int64_t item, fa_result *out);
  /* In a worker, after run and in its thread; may be NULL. True: this process can run nothing more and must be replaced. */
  bool (*spent)(void *ctx, int lane);
  /* In the parent: what a worker that died could not report: the case's name, recipe and backend. */
  void (*identify)(void *ctx, int64_t item, fa_result *out);
  /* In the parent: each result as soon as it arrives, in any order; may be NULL. */
  void (*arrived)(void *ctx, int64_t item, fa_result *result);
  /* In the parent: results in the order in which next handed the items out. false: start no more. */
  bool (*done)(void *ctx, int64_t item, fa_result *result);
  /* In the parent, a few times a second. */
  void (*tick)(void *ctx);
} fa_pool_config;

/* Runs until next returns false and every item is done. An interrupt (SIGINT, SIGTERM) stops handing out
 * items, and those running are finished; a second one ends the program. *interrupted is the signal, or 0. */
fa_status fa_pool_run(const fa_pool_config *config, int *interrupted, fa_error *err);

/* The same in steps, for callers whose next items depend on the results of the last round. The workers, and
 * with them opened devices, live from the first drain to close. From open to close an interrupt ends the
 * round, not the program. The config must outlive the pool; its timeout may change between rounds. */
typedef struct fa_pool fa_pool;
fa_status fa_pool_open(const fa_pool_config *config, fa_pool **out, fa_error *err);
fa_status fa_pool_drain(fa_pool *p, int *interrupted, fa_error *err);
void fa_pool_close(fa_pool *p); /* p may be NULL */

#endif
