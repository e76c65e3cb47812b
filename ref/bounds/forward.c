/* Bounds of O and LSE: a second walk over a query block's tiles, once its LSE is known. */
#include "cases/tensors/descale.h"
#include "ref/bounds/narrow.h"
#include "ref/bounds/scattered.h"
#include "ref/engine/dropout.h"
#include "ref/engine/topk.h"
#include "ref/math/blas.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"

#include <math.h>
#include <string.h>

static const double u = 0x1p-24;

/* Roundings of P in 8 bits: two logits that differ by less than an eighth have P that round alike. */
#define COARSE_P 0x1p-6

/* Terms of a whole row. */
typedef struct fa_row_terms {
  int64_t n;      /* visible keys, by range; or entries of the row's list, if these are more */
  double most;    /* how often the list names one key at most */
  double changes; /* number of changes of the running max */
  double rounds;  /* of combining splits */
  double log_l;   /* log of the row sum, relative to the row max */
  double max;     /* magnitude of that max */
  fa_bound_sink sink;
  double lifted;    /* what log n of a repeated key adds to that */
  double extra;     /* part of every exponent's error */
  double error_sum; /* sum_j p_j e_j */
  double scattered; /* sum_j (p_j e_score_j)^2 */
  double widest;    /* largest e_j of the row: its LSE cannot be off by more */
  bool kept;        /* false: the magnitude of some exponential is unknown */
  double least;     /* fa_bound_least_spread; 0: roundings do not repeat */
  fa_bound_spread spread;
  bool overflows; /* its scores may not fit the kernel's formats */
  float max_v;
} fa_row_terms;

/* A kernel's maximum is that of all logits, or that of the keys', to which it adds the sink's exponential. */
static void with_either_maximum(const fa_ref_scratch *w, int64_t k, fa_row_terms *t) {
  const double to_keys = fabs(w->m[k] + log(w->l[k]) - w->key_m[k]);
  const double alone = fabs(w->key_m[k] + log(w->key_l[k]) - w->m[k]);
  t->log_l = fmax(fmax(t->log_l, to_keys), fmax(alone, fabs(log(w->key_l[k]))));
  t->max = fmax(t->max, fabs(w->key_m[k]));
}

/* A kernel takes a key that its list names n times as n keys: its maximum lacks log n, its sum has it more, and each of
 * the n weights is rounded by itself (docs/reference/bounds.md, "Lists of keys"). */
static void with_repeated_keys(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, fa_row_terms *t) {
  if (!c->topk) return;
  if (t->n > 0 && t->n < c->p->topk.k) t->n = c->p->topk.k;
  t->most = (double)fa_ref_topk_most(c, r->e, r->row[k]);
  const double lift = log(t->most);
  t->log_l += lift;
  t->max += lift;
  t->lifted = 16 * u * lift;
}

static void row_terms_init(const fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                           fa_row_terms *t) {
  const fa_profile *p = c->profile;
  *t = (fa_row_terms){.n = r->hi[k] - r->lo[k], .most = 1, .kept = true};
  t->log_l = w->l[k] > 0 ? fabs(log(w->l[k])) : 0;
  t->max = fabs(w->m[k]);
  if (c->p->sinks.present && w->key_l[k] > 0) with_either_maximum(w, k, t);
  with_repeated_keys(c, r, k, t);
  t->changes = fa_bound_changes(c, t->n);
  /* Without dropout the largest P is 1 and the next ones are where representable numbers are dense; times 1 /
   * (1 - p) they can be anywhere. */
  if (c->generic && (c->p->dropout.p > 0 || p->u_p > COARSE_P) && p->u_p > 0)
    t->least = fa_bound_least_spread(c, p->u_p, t->n, false);
  fa_bound_spread_begin(&t->spread, 4 * t->least);
  if (p->max_splits > 1) t->rounds = p->exp_scaled ? 2 : fmin(p->max_splits, (double)t->n);
  t->extra = (1 + t->changes) * p->eps_exp +
             t->rounds * (2 * p->eps_exp + p->eps_log + 4 * u * (t->max + t->log_l)) + t->lifted;
  t->sink = fa_bound_sink_forward(c, r, k, w, t->extra);
}

/* Some exponential's magnitude is unknown. The errors are those of exponentials by now, and at most e^30. */
static void lose_row(const fa_ref_call *c, const float *e, int64_t n, fa_row_terms *t) {
  t->kept = false;
  t->overflows |= fa_bound_may_overflow(c) && fa_rows_best()->greatest(e, n) > 1e12f;
}

/* Row k of a tile: turns final scores into P. */
static void weigh_row(fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w, double *x,
                      fa_bound_scratch *b, int64_t k, int64_t j0, int64_t n, fa_row_terms *t) {
  int64_t begin, end, at;
  fa_ref_row_span(r, k, j0, n, &begin, &end);
  size_t head = (size_t)begin * sizeof(float), tail = (size_t)(n - end) * sizeof(float);
  float *tiles[3] = {b->w + k * n, b->w2 + k * n, b->we + k * n};
  for (int i = 0; i < 3; ++i) {
    memset(tiles[i], 0, head);
    memset(tiles[i] + end, 0, tail);
  }
  if (begin == end || w->key_l[k] == 0) {
    for (int i = 0; i < 3; ++i) memset(tiles[i] + begin, 0, (size_t)(end - begin) * sizeof(float));
    return;
  }
  at = k * n + begin;
  float widest = 0, max_v = rows->greatest(b->max_v + j0 + begin, end - begin);
  if (!fa_bound_exponent(c, rows, b->e_logit + at, x + at, end - begin, w->m[k], false, t->extra, &widest))
    lose_row(c, b->e_logit + at, end - begin, t);
  if (b->e_score) widest += (float)c->lambda * rows->greatest(b->e_score + at, end - begin);
  if (widest > t->widest) t->widest = widest;
  if (max_v > t->max_v) t->max_v = max_v;
  if (t->least > 0) fa_bound_spread_add(&t->spread, x + at, end - begin);
  fa_bound_magnitudes_add(c, r, k, j0 + begin, x + at, end - begin, w->m[k]);
  fa_ref_lse_probabilities(rows, x + at, end - begin, fa_ref_lse_of(w->m[k], w->l[k]));
  if (c->p->dropout.p > 0) fa_ref_dropout_row(c, r->e, r->h, r->row[k], j0 + begin, end - begin, w->z);
  fa_row_probabilities row = {.p = x + at,
                              .z = c->p->dropout.p > 0 ? w->z : NULL,
                              .e = b->e_logit + at,
                              .w = b->w + at,
                              .w2 = b->w2 + at,
                              .we = b->we + at};
  row.top = INFINITY;
  if (c->profile->u_p > 0) {
    /* in units of the row's largest weight, or of their sum where P is divided by it first */
    const double divided = c->profile->p_kept ? 1 : w->l[k];
    row.per_u = (float)(1 / c->profile->u_p);
    const double smallest = c->profile->p_descaled ? fa_descale_smallest(c->p, c->in, FA_T_V) : 1;
    row.floor = (float)(t->most * c->profile->floor_p / c->profile->u_p / divided / (1 - c->p->dropout.p) /
                        fmin(smallest, 1));
    row.top = (float)((1 - 0x1p-20) / w->l[k]);
    row.at_top = c->p->dropout.p > 0 || t->most > 1 || c->profile->max_rounded || c->profile->p_kept ||
                         c->profile->truncated_p > 0
                     ? 1
                     : 0x1p-12f; /* exp2(x s - m s) of the maximum is 1 except for one rounding of m s */
  }
  t->error_sum += rows->weights(&row, end - begin, c->generic);
  if (b->e_score)
    t->scattered += fa_bound_scatter_weights(c, row.p, row.z, b->e_score + at, end - begin, row.w, row.w2);
}

/* Of the sum that the LSE is the logarithm of: with the sink, or of the keys alone, whose shares add up to less than 1. */
static double error_of_sum(const fa_ref_call *c, const fa_ref_scratch *w, int64_t k, const fa_row_terms *t) {
  if (!c->p->sinks.present || c->p->sinks.in_lse) return t->error_sum + t->sink.share * t->sink.error;
  return t->error_sum / (exp(w->key_m[k] - w->m[k]) * w->key_l[k] / w->l[k]);
}

static void write_lse(fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                      const fa_row_terms *t, double sum_error) {
  const fa_profile *p = c->profile;
  fa_want *lse = &c->out->t[FA_T_LSE];
  int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
  double y = error_of_sum(c, w, k, t), size = fabs(lse->value[at]);
  double scores = t->kept && y <= 0.25 ? y * (1 + y) : t->widest;
  lse->accum[at] = (float)(scores + sum_error + (1 + t->rounds) * (p->eps_log + 2 * u * size) +
                           t->rounds * p->eps_exp + 3 * u * t->log_l + u * t->max + p->u_lse * size);
  if (t->overflows) lse->accum[at] = INFINITY;
  const double shift = t->error_sum + t->sink.share * t->sink.error + sum_error;
  lse->sum_error[at] = (float)(t->kept && shift <= 0.25 ? shift / (1 - shift) : INFINITY);
}

/* What small values, and small sums of an accumulator of few bits, lose. */
static double lost_values(const fa_ref_call *c, int64_t n, const fa_bound_scratch *b) {
  const fa_profile *p = c->profile;
  return p->operand_floor[FA_PRODUCT_PV] + p->operand_step[FA_PRODUCT_PV] * b->unit_v +
         fa_bound_sum_floor(c, FA_PRODUCT_PV, n) + p->floor_partials * p->max_splits;
}

static void write_o(fa_ref_call *c, const fa_ref_rows *r, int64_t k, const fa_ref_scratch *w,
                    const fa_bound_scratch *b, const fa_row_terms *t, double sum_error) {
  const fa_profile *p = c->profile;
  fa_want *o = &c->out->t[FA_T_O];
  int64_t at = fa_ref_q_index(c, r->e, r->h, r->row[k], c->dv);
  double shift = t->error_sum + t->sink.share * t->sink.error + sum_error, grow = 1 / (1 - shift);
  double gamma = fa_bound_gamma(c, FA_PRODUCT_PV, t->n) +
                 (2 * t->changes + 2 * t->rounds + (c->p->dropout.p > 0 ? 3 : 0)) * u +
                 p->operand[FA_PRODUCT_PV] + (p->p_kept ? 2 * u : 0) +
                 (t->rounds > 0 ? 2 * p->u_partials : 0);
  bool twice = c->p->dropout.p > 0 && p->u_dropout > 0; /* P is rounded, and P / (1 - p) again */
  double u_p = twice ? 2 * p->u_p : p->u_p, noise = twice ? sqrt(2) * p->u_p : p->u_p;
  if (twice) gamma += p->u_dropout;
  if (u_p == 0 && b->e_score) u_p = noise = fa_bound_unit(0);
  /* The sum, its rescalings, the quotient and the factors of splits may be subnormal; dropout scales last. */
  double steps = (double)t->n + t->changes + 2 * t->rounds + 2;
  double tiny = (steps * FA_F32_TINY + p->floor_operand + lost_values(c, t->n, b)) / (1 - c->p->dropout.p) +
                fa_bound_lost(t->n, b->unit_v);
  if (p->floor_o_descaled > 0) tiny += p->floor_o_descaled * fa_descale_largest(c->p, c->in, FA_T_V);
  const bool alike = t->least > 0 && fa_bound_is_alike(&t->spread, t->least);
  const bool lost = !t->kept || shift > 0.25; /* at least a mean of V */
  /* The sink may be a factor behind a finished O, made of an LSE that has its own error. */
  const double factor = t->sink.share > 0 ? t->sink.share * (shift + p->eps_log + 4 * u * t->max) + 3 * u : 0;
  const double sum = fmax(w->l[k], w->key_l[k]);
  const bool overflows = t->overflows || 1 / (1 - c->p->dropout.p) > p->max_weight ||
                         (p->max_splits > 1 && (double)t->max_v * sum > p->max_partials) ||
                         (double)t->max_v * sum > fa_bound_sum_limit(c, FA_PRODUCT_PV) ||
                         b->unit_v / 2 > p->operand_max[FA_PRODUCT_PV];
  const fa_row_settle row = {
      .value = o->value + at,
      .worst = b->o1 + k * c->dv,
      .squares = c->generic && !alike ? b->o2 + k * c->dv : NULL,
      .errors = b->oe + k * c->dv,
      .unit = b->unit_v,
      .lambda = c->lambda,
      .u_narrow = 1.0001 * u_p,
      .u_noise = noise,
      .by_errors = lost ? 0 : 1.0001 * grow * b->unit_v,
      .gamma = lost ? 0 : 1.0001 * gamma,
      .by_value =
          1.0001 *
          (lost ? 1 : grow * (shift + factor) + (4 + 2 * p->descales) * u + p->truncated_p + p->u_o_descaled),
      .add = overflows ? INFINITY : 1.0001 * (lost ? 2 * t->max_v / (1 - c->p->dropout.p) : tiny),
      .quant = o->quant + at,
      .noise = o->noise + at,
      .accum = o->accum + at};
  fa_rows_best()->settle(&row, c->dv);
  o->scale[at / c->dv] = t->max_v;
}

/* Rotated queries: how far they move if f32 rounds them the other way, in units of q. */
static void uncertain_queries(fa_bound_scratch *b, const fa_ref_call *c, const fa_ref_rows *r) {
  for (int64_t k = 0; k < r->n; ++k)
    for (int64_t x = 0; x < c->d; ++x)
      b->row_q[k * c->d + x] =
          (float)(c->rotated.dq[fa_ref_q_index(c, r->e, r->h, r->row[k], c->d) + x] / b->unit_q);
}

/* A tile's final scores, with their errors in b->e_logit. Kept scores are just q.k where a pair is
 * visible. */
static double *scores_again(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w,
                            fa_bound_scratch *b, int64_t j0, int n) {
  const int m = (int)r->n, d = (int)c->d;
  double *x = w->scores ? w->scores + r->n * (j0 - r->j_begin) : w->s;
  if (!w->scores)
    fa_blas_dgemm(FA_BLAS_N, FA_BLAS_T, m, n, d, c->p->scale, w->q, d, w->k + j0 * c->d, d, 0, x, n);
  fa_bound_logits_begin(b, c, r, j0, n, x);
  if (!w->scores) fa_ref_score_tile(c, r, j0, n, x, n, w->th, w->mod);
  fa_bound_logits_end(b, c, r, j0, n, x, w->th, w->mod);
  return x;
}

void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b) {
  const fa_rows *rows = fa_rows_best();
  int m = (int)r->n, dv = (int)c->dv;
  float beta = 0;
  fa_row_terms t[FA_BLOCK_M];
  fa_ref_tile_spans spans;
  fa_bound_head(b, c, w, false);
  fa_bound_scale(w->q, r->n * c->d, b->unit_q, b->q, b->e_score ? b->q2 : NULL);
  if (b->row_q) uncertain_queries(b, c, r);
  fa_bound_narrow_rows(b, c, r, w);
  for (int64_t k = 0; k < r->n; ++k) row_terms_init(c, r, k, w, &t[k]);
  for (int64_t j0 = r->j_begin; j0 < r->j_end; j0 += FA_BLOCK_N) {
    int n = (int)(r->j_end - j0 < FA_BLOCK_N ? r->j_end - j0 : FA_BLOCK_N);
    if (!fa_ref_tile_visited(c, r, j0, n)) continue;
    double *x = scores_again(c, r, w, b, j0, n);
    for (int64_t k = 0; k < r->n; ++k) weigh_row(c, rows, r, w, x, b, k, j0, n, &t[k]);
    const float *v = b->v + j0 * c->dv;
    fa_ref_tile_spans_init(r, j0, n, &spans);
    fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->w, n, v, dv, beta, b->o1, dv, &spans.rows);
    fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->we, n, v, dv, beta, b->oe, dv, &spans.rows);
    if (c->generic)
      fa_blas_sgemm_part(FA_BLAS_N, m, dv, n, 1, b->w2, n, b->v2 + j0 * c->dv, dv, beta, b->o2, dv,
                         &spans.rows);
    fa_bound_scatter_mean_keys(b, c, r, w, j0, n, x, beta == 0);
    beta = 1;
  }
  for (int64_t k = 0; k < r->n && beta == 1; ++k) {
    if (w->key_l[k] == 0) continue; /* fully masked: exactly 0 */
    double sum_error = fa_bound_sum(c, c->profile->mma_block ? t[k].n / 4 + (int64_t)t[k].changes : t[k].n);
    if (t[k].sink.share > 0) sum_error += 2 * u;
    t[k].error_sum += c->lambda * sqrt(t[k].scattered) + fa_bound_scatter_query(c, b, w, k);
    fa_bound_magnitudes_finish(c, r, k, t[k].widest, t[k].kept);
    write_lse(c, r, k, w, &t[k], sum_error);
    write_o(c, r, k, w, b, &t[k], sum_error);
  }
}
