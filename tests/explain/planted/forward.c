/* Softmax and the product with V, tile after tile with a running maximum. */
#include "tests/explain/planted/head.h"

#include <math.h>
#include <string.h>

#define KEYS 64 /* of a tile */
#define LN_2 0.69314718055994530942

typedef struct running {
  double max, sum;
  double *o;
} running;

static double rounded_p(const pl_call *call, double p) {
  static const struct {
    pl_mistake what;
    pl_format format;
  } kinds[] = {{PL_rounded_p_bf16, PL_BF16},
               {PL_rounded_p_f16, PL_F16},
               {PL_rounded_p_e4m3, PL_E4M3},
               {PL_rounded_p_e5m2, PL_E5M2}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i)
    if (call->planted[kinds[i].what]) return pl_round(p, kinds[i].format, false);
  return p;
}

/* What was summed up shrinks as the maximum rises. */
static void rescale(const pl_call *call, const pl_head *e, running *r, double max, int64_t tile) {
  const int64_t *m = call->planted, lost = m[PL_o_not_rescaled];
  const double factor = exp(r->max - max);
  if (r->max == -INFINITY || m[PL_max_not_subtracted]) return;
  if (!m[PL_l_not_rescaled]) r->sum *= factor;
  for (int64_t d = 0; d < e->dv && lost != 1000 && lost != tile; ++d) r->o[d] *= factor;
}

static void add_tile(const pl_call *call, pl_head *e, running *r, int64_t from, int64_t to) {
  double max = r->max;
  for (int64_t j = from; j < to; ++j) max = fmax(max, e->x[j]);
  if (max == -INFINITY) return;
  rescale(call, e, r, max, from / KEYS);
  r->max = max;
  const double taken = call->planted[PL_max_not_subtracted] ? 0.0 : max;
  for (int64_t j = from; j < to; ++j) {
    /* Numbers without their maximum overflow as floats do. */
    const double p =
        (double)(call->planted[PL_max_not_subtracted] ? expf((float)e->x[j]) : exp(e->x[j] - taken));
    r->sum += p;
    e->p[j] = rounded_p(call, p) * e->keep[j];
  }
  for (int64_t d = 0; d < e->dv; ++d)
    r->o[d] += pl_dot(call, to - from, e->p + from, e->v + from * e->dv + d, e->dv);
  const int64_t *m = call->planted;
  if (m[PL_accumulate_f16] || m[PL_accumulate_bf16] || m[PL_accumulate_bf16__tiles])
    for (int64_t d = 0; d < e->dv; ++d)
      r->o[d] = pl_round(r->o[d], m[PL_accumulate_f16] ? PL_F16 : PL_BF16, false);
}

static double lse_of(const pl_call *call, double max, double sum) {
  const int64_t *m = call->planted;
  const double lse = m[PL_max_not_subtracted] ? log(sum) : max + log(sum);
  if (m[PL_lse_base_2]) return lse / LN_2;
  if (m[PL_lse_without_max]) return log(sum);
  if (m[PL_lse_without_scale]) return lse / call->scale;
  if (m[PL_lse_without_scale__of_max]) return max / call->scale + log(sum);
  return m[PL_lse_negated] ? -lse : lse;
}

static void finish(const pl_call *call, const pl_head *e, const running *r, double *lse) {
  const int64_t tile = call->planted[PL_keys_past_end_as_zeros];
  const double ghosts = tile ? (double)((tile - e->n_k % tile) % tile) : 0.0;
  const double sum = r->sum + (ghosts > 0.0 ? ghosts * exp(-r->max) : 0.0);
  *lse = r->max == -INFINITY ? (double)call->p->empty_lse : lse_of(call, r->max, sum);
  for (int64_t d = 0; d < e->dv && r->max != -INFINITY && !call->planted[PL_o_not_normalised]; ++d)
    r->o[d] /= sum;
}

static bool is_lost(const pl_call *call, const pl_head *e, int64_t i) {
  const int64_t tile = call->planted[PL_last_rows_lost];
  return call->planted[PL_output_zero] || (tile && i >= e->n_q / tile * tile);
}

/* The element of O that is stored as (i, d). */
static double stored_o(const pl_call *call, const pl_head *e, int64_t i, int64_t d) {
  const int64_t *m = call->planted;
  int64_t row = i, column = d;
  if (is_lost(call, e, i)) return 0.0;
  if (m[PL_rows_swapped]) row = i ^ m[PL_rows_swapped];
  if (m[PL_columns_swapped]) column = d ^ m[PL_columns_swapped];
  if (m[PL_halves_swapped]) column = (d + e->dv / 2) % e->dv;
  if (m[PL_output_of_other_rows] && i >= m[PL_output_of_other_rows]) row = i - m[PL_output_of_other_rows];
  if (m[PL_fragments_transposed]) {
    row = i / 8 * 8 + d % 8;
    column = d / 8 * 8 + i % 8;
  }
  return e->o[(row < e->n_q ? row : i) * e->dv + (row < e->n_q && column < e->dv ? column : d)];
}

static void store(const pl_call *call, const pl_head *e) {
  const fa_plugin_tensor *o = &call->t->o, *lse = &call->t->lse;
  const bool cut = call->planted[PL_truncated_instead_of_rounded] != 0;
  for (int64_t i = 0; i < e->n_q; ++i) {
    const int64_t at = pl_row_q(call, e, o, i);
    for (int64_t d = 0; d < e->dv; ++d)
      pl_store(o, at + d * o->stride[o->rank - 1], stored_o(call, e, i, d), cut);
    pl_store(lse, pl_row_lse(call, e, lse, i), is_lost(call, e, i) ? 0.0 : e->lse[i], false);
  }
}

void pl_forward(const pl_call *call, pl_head *e) {
  for (int64_t i = 0; i < e->n_q; ++i) {
    running r = {.max = -INFINITY, .sum = 0.0, .o = e->o + i * e->dv};
    memset(r.o, 0, (size_t)e->dv * sizeof *r.o);
    pl_scores(call, e, i);
    pl_dropout(call, e, i, false);
    for (int64_t j = 0; j < e->n_k; j += KEYS)
      add_tile(call, e, &r, j, j + KEYS < e->n_k ? j + KEYS : e->n_k);
    finish(call, e, &r, &e->lse[i]);
  }
  store(call, e);
}
