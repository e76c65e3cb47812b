/* Which worker gets which item. */
#include "fuzz/workers/parts.h"

/* Of the results that wait for their turn, as FA_POOL_MAX_PENDING. */
#define MAX_WAITING_BYTES ((size_t)512 << 20)

static bool may_run_ahead(const fa_pool *p) {
  return p->n_given - p->n_passed_on < FA_POOL_MAX_PENDING && p->waiting_bytes < MAX_WAITING_BYTES;
}

/* Takes the next item. False: there is none, or none yet. */
static bool take_next(fa_pool *p, int64_t *slot) {
  int64_t item = 0;
  if (p->no_more || !may_run_ahead(p)) return false;
  if (fa_pool_interrupted() || !p->c->next(p->c->ctx, &item)) {
    p->no_more = true;
    return false;
  }
  *fa_pool_at(p, p->n_given) = (fa_pending){.item = item};
  *slot = p->n_given++;
  return true;
}

/* The same, of those that are run again. */
static bool take_again(fa_pool *p, int64_t *slot) {
  if (p->n_again_given == p->n_again) return false;
  *slot = p->again[p->n_again_given++ % FA_POOL_MAX_PENDING];
  return true;
}

static fa_status give(fa_pool *p, fa_worker *w, int n_lanes, int64_t slot, fa_error *err) {
  fa_status status = FA_OK;
  if (w->pid == 0) status = fa_worker_start(p->c, n_lanes, p->w, p->n_shared + p->n_alone, w, err);
  if (status == FA_OK) fa_worker_assign(w, slot, fa_pool_at(p, slot)->item);
  return status;
}

/* A subject that goes wrong often costs less where nothing is run twice. */
static void consider_apart(fa_pool *p) {
  enum { FEW = 16 };
  if (p->c->lanes > 1 && p->n_again >= FEW && p->n_again > p->n_given / 4) p->apart = true;
}

/* Beside those of several lanes, as many as there are of these. */
static fa_status give_alone(fa_pool *p, fa_error *err) {
  const bool all = p->apart || p->n_shared == 0;
  const int n = all || p->n_shared > p->n_alone ? p->n_alone : p->n_shared;
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < n; ++i) {
    fa_worker *w = &p->w[p->n_shared + i];
    int64_t slot;
    if (fa_worker_n_busy(w) > 0) continue;
    if (!take_again(p, &slot) && !(all && take_next(p, &slot))) break;
    status = give(p, w, 1, slot, err);
  }
  return status;
}

/* First to all workers, then to the second lane of all, and so on: as many as are wanted at a time, in all. */
static fa_status give_shared(fa_pool *p, fa_error *err) {
  fa_status status = FA_OK;
  int n_busy = 0;
  for (int i = 0; i < p->n_shared; ++i) n_busy += fa_worker_n_busy(&p->w[i]);
  for (int lane = 0; lane < p->c->lanes; ++lane)
    for (int i = 0; i < p->n_shared; ++i) {
      fa_worker *w = &p->w[i];
      int64_t slot;
      if (n_busy >= p->c->n_workers || fa_worker_n_busy(w) > lane) continue;
      if (!take_next(p, &slot)) return status;
      if ((status = give(p, w, p->c->lanes, slot, err)) != FA_OK) return status;
      ++n_busy;
    }
  return status;
}

/* Those that get nothing more; their memory is wanted elsewhere. */
static void end_shared(fa_pool *p) {
  for (int i = 0; i < p->n_shared; ++i)
    if (fa_worker_n_busy(&p->w[i]) == 0) fa_worker_stop(&p->w[i], false);
}

fa_status fa_pool_hand_out(fa_pool *p, fa_error *err) {
  consider_apart(p);
  const fa_status status = give_alone(p, err);
  if (p->apart) end_shared(p);
  return status == FA_OK && !p->apart ? give_shared(p, err) : status;
}
