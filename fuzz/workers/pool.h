/* A pool of worker processes, so that a subject that crashes, hangs or damages memory costs one case.
 *
 * Workers are forked before the first case and before this process has threads. Each gets item numbers
 * through a pipe and sends results back. A worker that dies or is late is replaced; one that
 * somebody killed (SIGKILL) too, and its item begun again. Workers die with their parent. */
#ifndef FA_FUZZ_WORKERS_POOL_H
#define FA_FUZZ_WORKERS_POOL_H

#include "report/result.h"

typedef struct fa_pool_config {
  int n_workers;
  double timeout_s; /* per item; <= 0: none */
  bool in_process;  /* no workers: items run here, one after another, without a timeout */
  void *ctx;        /* passed to every call below */
  /* In the parent: the next item, or false when there are no more for now and ever. */
  bool (*next)(void *ctx, int64_t *item);
  /* In a worker: runs one item into an initialised result. */
  void (*run)(void *ctx, int64_t item, fa_result *out);
  /* In a worker, after run; may be NULL. True: this process can run nothing more, let another take its place.
   */
  bool (*spent)(void *ctx);
  /* In the parent: what a worker that died could not say: the case's name, recipe and backend. */
  void (*identify)(void *ctx, int64_t item, fa_result *out);
  /* In the parent: each result as soon as it is there, in any order; may be NULL. */
  void (*arrived)(void *ctx, int64_t item, const fa_result *result);
  /* In the parent: results, in the order in which next handed the items out. false: start no more. */
  bool (*done)(void *ctx, int64_t item, fa_result *result);
  /* In the parent, a few times a second. */
  void (*tick)(void *ctx);
} fa_pool_config;

/* Until next says no more and every item is done. An interrupt (SIGINT, SIGTERM) stops handing out items;
 * those that run are finished; a second one ends the program. *interrupted is the signal, or 0. */
fa_status fa_pool_run(const fa_pool_config *config, int *interrupted, fa_error *err);

/* The same in parts, for who finds out from the results of one round what the next one's items are: the
 * workers, and with them opened devices, live from the first drain to close, and from open to close an
 * interrupt ends the round, not the program. The config outlives the pool; its timeout may change between
 * rounds. */
typedef struct fa_pool fa_pool;
fa_status fa_pool_open(const fa_pool_config *config, fa_pool **out, fa_error *err);
fa_status fa_pool_drain(fa_pool *p, int *interrupted, fa_error *err);
void fa_pool_close(fa_pool *p); /* NULL is all right */

#endif
