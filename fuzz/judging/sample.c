#include "fuzz/judging/places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *fa_sample_refused(const fa_problem *p, const fa_tensors *in, const fa_contract *contract,
                              const fa_profile *profile) {
  const bool chain = p->softcap > 0 || p->score_mod;
  if (p->family == FA_MERGE) return "a merge of partial states has no strips of keys";
  if (p->quantized.amax) return "amax_p and amax_o are of all rows";
  if (p->sinks.present) return "a sink's gradient sums over all rows of its head";
  if (p->bias.present && p->bias.grad) return "the bias's gradient sums over all rows";
  for (int k = 0; k < p->n_captures; ++k)
    if (p->captures[k].grad) return "a buffer's gradient sums over all rows";
  if (p->return_softmax || in->t[FA_T_P_DEBUG].data || in->t[FA_T_DROPOUT_KEEP].data)
    return "a matrix of all pairs is returned";
  if (contract && (contract->o_of_empty != FA_O_EMPTY_ZERO || contract->lse_of_empty == FA_LSE_EMPTY_ANY))
    return "rows without a visible key are of a kind of their own, and all of them have to be known";
  if (chain && profile && profile->floor_operand > 0) return "a bound depends on the steepest of all pairs";
  return NULL;
}

/* ---- lists ---- */

bool places_add(places *x, fa_ref_place at) {
  if (x->n == x->room) {
    const int64_t room = x->room ? 2 * x->room : 64;
    fa_ref_place *more = realloc(x->at, (size_t)room * sizeof *more);
    if (!more) return false;
    x->at = more;
    x->room = room;
  }
  x->at[x->n++] = at;
  return true;
}

void places_settle(places *x) {
  int64_t kept = 0;
  if (x->n > 0) qsort(x->at, (size_t)x->n, sizeof *x->at, fa_ref_place_order);
  for (int64_t i = 0; i < x->n; ++i)
    if (i == 0 || fa_ref_place_order(&x->at[i], &x->at[kept - 1]) != 0) x->at[kept++] = x->at[i];
  x->n = kept;
}

bool places_add_head(places *x, const fa_ref_sequence *e, int64_t h) {
  bool ok = true;
  for (int64_t i = 0; ok && i < e->sq; ++i) ok = places_add(x, (fa_ref_place){e->b, h, i});
  return ok;
}

fa_status places_no_memory(fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "out of memory for a sample");
}

/* ---- what the gradients of its strips need ---- */

/* Rows of a query head whose LSE, in one float, has lost what P depends on. */
static bool add_coarse(places *to, const fa_ref_call *c, const fa_ref_sequence *e, int64_t h,
                       const fa_tensor *lse) {
  bool ok = true;
  for (int64_t i = 0; ok && i < e->sq; ++i) {
    const double size = fabs(fa_ref_lse_get(c, lse, e, h, i));
    if (size >= FA_COARSE_LSE && size < INFINITY) ok = places_add(to, (fa_ref_place){e->b, h, i});
  }
  return ok;
}

static bool add_of_strips(places *to, const fa_ref_call *c, const fa_sample_places *x, bool all,
                          const fa_tensor *lse) {
  bool ok = true;
  for (int64_t n = 0; ok && n < x->n_strips; ++n) {
    const fa_ref_place *strip = &x->strip[n], *before = n > 0 ? strip - 1 : NULL;
    const fa_ref_sequence *e = &c->entry[strip->b];
    if (before && before->b == strip->b && before->h == strip->h) continue;
    for (int64_t h = strip->h * c->group; ok && h < (strip->h + 1) * c->group; ++h) {
      if (all) ok = places_add_head(to, e, h);
      if (!all && lse) ok = add_coarse(to, c, e, h, lse);
    }
  }
  return ok;
}

fa_status fa_sample_rows_needed(const fa_problem *p, const fa_tensors *in, const fa_sample_places *x,
                                bool all, const fa_tensor *lse, fa_ref_sample *out, fa_error *err) {
  const fa_ref_options options = {.n_threads = 1};
  fa_ref_call c;
  fa_wants none;
  places rows = {0};
  fa_status status = fa_ref_call_init(&c, p, in, &options, &none, err);
  *out = fa_sample_of(x);
  out->row = NULL, out->n_rows = 0; /* it owns its own */
  if (status != FA_OK) return status;
  bool ok = true;
  for (int64_t n = 0; ok && n < x->n_rows; ++n) ok = places_add(&rows, x->row[n]);
  if (ok) ok = add_of_strips(&rows, &c, x, all, lse);
  fa_ref_call_free(&c);
  places_settle(&rows);
  out->row = rows.at;
  out->n_rows = rows.n;
  return ok ? FA_OK : places_no_memory(err);
}

/* ---- the places themselves ---- */

fa_ref_sample fa_sample_of(const fa_sample_places *x) {
  return (fa_ref_sample){x->n_rows, x->n_strips, x->row, x->strip};
}

bool fa_sample_is_whole(const fa_sample_places *x) {
  return x->n_rows == x->of_rows && x->n_strips == x->of_strips;
}

void fa_sample_places_free(fa_sample_places *x) {
  free(x->row);
  free(x->strip);
  *x = (fa_sample_places){0};
}
