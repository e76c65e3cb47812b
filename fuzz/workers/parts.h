/* Private to fuzz/workers: a pool, and its steps. */
#ifndef FA_FUZZ_WORKERS_PARTS_H
#define FA_FUZZ_WORKERS_PARTS_H

#include "fuzz/workers/suspects.h"

#include <signal.h>

/* An item that was handed out and whose result has not been passed on. */
typedef struct fa_pending {
  int64_t item;
  char *bytes; /* packed result, NULL = still running */
  size_t n_bytes;
  int n_kills;           /* workers killed from outside while running it */
  fa_suspects *suspects; /* NULL, or: it is run again, with these */
} fa_pending;

struct fa_pool {
  const fa_pool_config *c;
  fa_worker *w; /* those of several lanes, and behind them those of one */
  int n_shared, n_alone;
  fa_pending queue[FA_POOL_MAX_PENDING]; /* ring: slot s at s % FA_POOL_MAX_PENDING */
  int64_t n_given, n_passed_on;
  int64_t again[FA_POOL_MAX_PENDING]; /* ring: slots that wait to be run again */
  int64_t n_again, n_again_given;
  bool apart;           /* so many were run again that all run alone from now on */
  size_t waiting_bytes; /* of the results in the queue */
  bool no_more;
  struct sigaction old_int, old_term, old_pipe;
};

fa_pending *fa_pool_at(fa_pool *p, int64_t slot);
bool fa_pool_interrupted(void);

/* ---- hand_out.c ---- */

/* Gives items to workers that have nothing to do. */
fa_status fa_pool_hand_out(fa_pool *p, fa_error *err);

/* ---- take_back.c ---- */

/* Reads what the worker has sent; FA_OK also if its answer is not complete yet. */
fa_status fa_pool_receive(fa_pool *p, fa_worker *w, fa_error *err);
/* An item of the worker is late. */
fa_status fa_pool_lose_late(fa_pool *p, fa_worker *w, fa_error *err);

#endif
