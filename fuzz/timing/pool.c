#include "fuzz/timing/pool.h"

#include "cases/base/rng.h"
#include "fuzz/timing/link.h"

#include <stdlib.h>
#include <string.h>

enum { FEWEST_PLACES = 4, MOST_TRIES = 200 };
#define MOST_BYTES 8e9 /* of the judge's own copies */

int fa_pool_places(double wanted, double bytes_of_one) {
  double n = bytes_of_one > 0 ? wanted / bytes_of_one + 1 : FEWEST_PLACES;
  if (n * bytes_of_one > MOST_BYTES) n = MOST_BYTES / bytes_of_one;
  return n < FEWEST_PLACES ? FEWEST_PLACES : n > FA_MOST_PLACES ? FA_MOST_PLACES : (int)n;
}

static int next_place(fa_pool *x, int id) {
  int *order = x->deck[id].order, *at = &x->deck[id].at;
  if (*at == 0) {
    for (int i = 0; i < x->n; ++i) order[i] = i;
    for (int i = x->n - 1; i > 0; --i) {
      const int k = (int)fa_secret_below(i + 1), kept = order[i];
      order[i] = order[k], order[k] = kept;
    }
  }
  const int place = order[*at];
  *at = (*at + 1) % x->n;
  return place;
}

static uint64_t hash_of(const fa_pool *x, const fa_time_problem *problem) {
  uint64_t bits, hash;
  memcpy(&bits, &problem->scale, sizeof bits);
  hash = fa_rng_key(bits, 0);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_time_moves(&x->place[0], (fa_tensor_id)id))
      hash = fa_rng_u64(hash, (uint64_t)problem->place[id], x->version[problem->place[id]]);
  return hash;
}

static bool was_used(const fa_pool *x, uint64_t hash) {
  for (size_t i = 0; i < x->n_used; ++i)
    if (x->used[i] == hash) return true;
  return false;
}

static fa_status remember(fa_pool *x, uint64_t hash, fa_error *err) {
  if (x->n_used == x->capacity) {
    const size_t more = x->capacity ? 2 * x->capacity : 256;
    uint64_t *bigger = realloc(x->used, more * sizeof *bigger);
    if (!bigger) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    x->used = bigger, x->capacity = more;
  }
  x->used[x->n_used++] = hash;
  return FA_OK;
}

/* Half of all problems have a slightly smaller scale, exactly representable if the case's is. */
static double scale_of(double scale) {
  return fa_secret_below(2) ? scale : scale * 0.9375;
}

fa_status fa_pool_draw(fa_pool *x, double scale, bool same, fa_time_problem *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  out->scale = scale;
  if (same) {
    for (int id = 0; id < FA_T_COUNT; ++id) out->place[id] = x->next;
    x->next = (x->next + 1) % x->n;
    return FA_OK;
  }
  uint64_t hash = 0;
  for (int tries = 0; tries < MOST_TRIES; ++tries) {
    out->scale = scale_of(scale);
    for (int id = 0; id < FA_T_COUNT; ++id)
      if (fa_time_moves(&x->place[0], (fa_tensor_id)id)) out->place[id] = next_place(x, id);
    hash = hash_of(x, out);
    if (!was_used(x, hash)) break;
  }
  return remember(x, hash, err);
}

void fa_pool_inputs(const fa_pool *x, const fa_time_problem *problem, fa_tensors *out) {
  *out = x->place[0];
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_time_moves(&x->place[0], (fa_tensor_id)id)) out->t[id] = x->place[problem->place[id]].t[id];
}

void fa_pool_free(fa_pool *x) {
  for (int i = 0; i < x->n; ++i) fa_tensors_free(&x->place[i]);
  free(x->used);
  memset(x, 0, sizeof *x);
}
