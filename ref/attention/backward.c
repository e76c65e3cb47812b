/* Backward values: dQ, dK, dV in double, five GEMMs per tile.
 *
 * A work item is a run of query blocks of one key/value head's group of query heads. It sums dK and dV
 * privately, and the sums are added to the outputs in item order. How the work is divided depends on the
 * problem alone, so the result does not depend on the number of threads. */
#include "ref/attention/backward.h"
#include "cases/threads/parallel.h"
#include "ref/attention/coarse.h"
#include "ref/engine/dropout.h"
#include "ref/reference.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"

#include "ref/mods/tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Merging an item's private sums costs a pass over the head's keys, which pays off from a thousand rows
 * on. */
enum { ITEMS_WANTED = 128, BLOCKS_PER_ITEM = 4 };

static int64_t n_blocks(int64_t n) {
  return (n + FA_BLOCK_M - 1) / FA_BLOCK_M;
}

/* Number of query blocks of a sequence's group, and of the items that they form. */
static int64_t group_blocks(const fa_ref_call *c, const fa_ref_sequence *e) {
  return c->group * n_blocks(e->sq);
}

/* Kernels may round each head's part of a group's sum. The bounds then need the parts, so an item is one
 * head. */
static bool heads_apart(const fa_ref_call *c) {
  return c->profile && c->profile->gqa_partials_in_io && c->group > 1;
}

static int64_t items_per_group(const fa_ref_call *c, const fa_ref_sequence *e) {
  const fa_ref_coarse *coarse = fa_ref_coarse_of(c);
  if (heads_apart(c)) return e->sq > 0 ? c->group : 0;
  if (coarse && coarse->tile > 0) return e->sq > 0 ? 1 : 0; /* roundings depend on the order */
  int64_t groups = c->p->batch * c->heads_kv, blocks = group_blocks(c, e);
  int64_t wanted = (ITEMS_WANTED + groups - 1) / groups;
  int64_t most = (blocks + BLOCKS_PER_ITEM - 1) / BLOCKS_PER_ITEM;
  return most < wanted ? most : wanted;
}

static bool takes_given_o(const fa_ref_call *c) {
  return c->given_o && !(c->profile && c->profile->delta != FA_DELTA_STORED_O);
}

static double dlse_of(const fa_ref_call *c, const fa_ref_rows *r, int64_t k) {
  const fa_tensor *t = &c->in->t[FA_T_DLSE];
  return t->data ? fa_ref_lse_get(c, t, r->e, r->h, r->row[k]) : 0;
}

/* q, dO, O, LSE, and delta as sum dO O - dLSE. */
static void load_rows(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w) {
  const fa_ref_sequence *e = r->e;
  fa_ref_load_q(c, FA_T_Q, e, r->h, r->row, r->n, w->q);
  fa_ref_load_q(c, FA_T_DO, e, r->h, r->row, r->n, w->d_o);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t i = r->row[k];
    double *o = w->o + k * c->dv;
    if (takes_given_o(c)) {
      const fa_tensor *t = c->given_o;
      fa_ref_load_row(t, fa_ref_q_row(c, t, e, r->h, i), t->stride[t->rank - 1], c->dv, o);
    } else {
      memcpy(o, c->forward->t[FA_T_O].value + fa_ref_q_index(c, e, r->h, i, c->dv),
             (size_t)c->dv * sizeof *o);
    }
    const fa_ref_lse lse = fa_ref_lse_load(c, e, r->h, i);
    w->l[k] = lse.value;
    w->rest[k] = lse.rest;
    double delta = 0;
    for (int64_t x = 0; x < c->dv; ++x) delta += w->d_o[k * c->dv + x] * o[x];
    if (c->twist && c->twist->delta_missing) delta = 0;
    if (c->twist && c->twist->delta_negated) delta = -delta;
    w->delta[k] = delta - dlse_of(c, r, k);
  }
}

/* C = alpha A B^T, with a mistake where it is to be rounded. */
static void row_products(const fa_ref_coarse *coarse, bool rounded, const fa_ref_product *p, double *part) {
  if (coarse && rounded)
    fa_ref_coarse_scores(coarse, p, part);
  else
    fa_blas_dgemm(p->ta, p->tb, p->m, p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, 0, p->c, p->ldc);
}

/* w->s = scores and w->dp = dP of a tile, and the tile's errors. */
static void scores_and_dp(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0,
                          int64_t n, fa_bound_scratch *b) {
  const int m = (int)r->n, d = (int)c->d, dv = (int)c->dv, nn = (int)n;
  const double *k = w->k + j0 * c->d, *v = w->v + j0 * c->dv;
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  const fa_ref_product qk = {FA_BLAS_N, FA_BLAS_T, m, nn, d, c->p->scale, w->q, d, k, d, w->s, nn};
  const fa_ref_product dov = {FA_BLAS_N, FA_BLAS_T, m, nn, dv, 1, w->d_o, dv, v, dv, w->dp, nn};
  row_products(x, x && x->scores, &qk, w->part);
  if (b) fa_bound_logits_begin(b, c, r, j0, n, w->s);
  fa_ref_score_tile(c, r, j0, n, w->s, n, c->p->softcap > 0 ? w->th : NULL, w->mod);
  if (b) fa_bound_logits_end(b, c, r, j0, n, w->s, w->th, w->mod);
  row_products(x, x && x->dp, &dov, w->part);
  if (b) fa_bound_backward_tile_begin(c, r, j0, n, b);
}

/* One row of w->s: scores become P, and w->z dropout's factors, from key *begin on. */
static void probabilities(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t k, int64_t j0, int64_t n, fa_bound_scratch *b, int64_t *begin,
                          int64_t *end) {
  double *p = w->s + k * n, *dp = w->dp + k * n;
  fa_ref_row_span(r, k, j0, n, begin, end);
  memset(p, 0, (size_t)*begin * sizeof *p);
  memset(dp, 0, (size_t)*begin * sizeof *dp);
  memset(p + *end, 0, (size_t)(n - *end) * sizeof *p);
  memset(dp + *end, 0, (size_t)(n - *end) * sizeof *dp);
  if (b && *end > *begin) fa_bound_backward_row_exponent(c, rows, w, b, k, n, *begin, *end);
  fa_ref_lse_probabilities(rows, p + *begin, *end - *begin, (fa_ref_lse){w->l[k], w->rest[k]});
  if (c->p->dropout.p > 0) fa_ref_dropout_row(c, r->e, r->h, r->row[k], j0 + *begin, *end - *begin, w->z);
}

/* delta as sum P dP - dLSE, as automatic differentiation has it: a walk of its own. */
static void sum_delta(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                      fa_bound_scratch *b) {
  for (int64_t k = 0; k < r->n; ++k) w->delta[k] = -dlse_of(c, r, k);
  for (int64_t j0 = r->j_begin; j0 < r->j_end; j0 += FA_BLOCK_N) {
    const int64_t n = r->j_end - j0 < FA_BLOCK_N ? r->j_end - j0 : FA_BLOCK_N;
    if (!fa_ref_tile_visited(c, r, j0, n)) continue;
    scores_and_dp(c, r, w, j0, n, b);
    for (int64_t k = 0; k < r->n; ++k) {
      int64_t begin, end;
      probabilities(c, rows, r, w, k, j0, n, b, &begin, &end);
      if (b) fa_bound_delta_add(c, w, b, k, n, begin, end);
      if (c->twist) fa_ref_astray_round(&c->twist->p_in_delta, w->s + k * n + begin, end - begin);
      for (int64_t j = begin; j < end; ++j)
        w->delta[k] += w->s[k * n + j] * (c->p->dropout.p > 0 ? w->z[j - begin] : 1) * w->dp[k * n + j];
    }
  }
}

void fa_ref_backward_rows_begin(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r,
                                fa_ref_scratch *w, fa_bound_scratch *b) {
  load_rows(c, r, w);
  if (b) fa_bound_backward_begin(c, r, w, b);
  if (c->profile && c->profile->delta == FA_DELTA_SUM_P_DP) sum_delta(c, rows, r, w, b);
  if (b) fa_bound_backward_delta(c, r, w, b);
}

void fa_ref_backward_tile(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n, fa_bound_scratch *b) {
  scores_and_dp(c, r, w, j0, n, b);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end;
    double *p = w->s + k * n, *dp = w->dp + k * n;
    probabilities(c, rows, r, w, k, j0, n, b, &begin, &end);
    if (b) fa_bound_backward_row(c, rows, w, b, k, n, begin, end);
    const double *z = c->p->dropout.p > 0 ? w->z : NULL;
    if (c->twist && c->twist->p_in_ds.bits > 0)
      fa_ref_astray_dscore(&c->twist->p_in_ds, p + begin, dp + begin, z, w->delta[k], end - begin);
    else
      rows->dscore(p + begin, dp + begin, z, w->delta[k], end - begin);
  }
}

/* Turns g into dS: applies the derivatives of score_mod and softcap. */
static void through_chain(const fa_ref_call *c, const fa_rows *rows, const fa_ref_rows *r, fa_ref_scratch *w,
                          int64_t j0, int64_t n) {
  const bool capped = c->p->softcap > 0 && !(c->twist && c->twist->softcap_not_derived);
  if (!capped && !c->p->score_mod) return;
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    const fa_ref_mod_row row = {c, w->mod, r->e, r->h, r->row[k], j0 + begin, end - begin};
    if (c->p->score_mod) fa_ref_mods_derivative(&row, w->mod->before + k * n + begin, w->dp + k * n + begin);
    if (!capped) continue;
    rows->dsoftcap(w->dp + k * n + begin, w->th + k * n + begin, end - begin);
  }
}

/* Range of keys that an item has touched so far and that must be merged. */
typedef struct fa_touched {
  int64_t begin, end;
} fa_touched;

/* Zeroes the private sums of keys begin .. end - 1. */
static void clear(const fa_ref_call *c, fa_ref_scratch *w, fa_bound_scratch *b, int64_t begin, int64_t end) {
  memset(w->dk + begin * c->d, 0, (size_t)((end - begin) * c->d) * sizeof *w->dk);
  memset(w->dv + begin * c->dv, 0, (size_t)((end - begin) * c->dv) * sizeof *w->dv);
  if (b) fa_bound_backward_touch(c, b, begin, end);
}

/* Grows the touched range and zeroes the new part. */
static void touch(const fa_ref_call *c, fa_ref_scratch *w, fa_bound_scratch *b, fa_touched *t, int64_t begin,
                  int64_t end) {
  if (t->begin == t->end) t->begin = t->end = begin;
  if (begin < t->begin) {
    clear(c, w, b, begin, t->begin);
    t->begin = begin;
  }
  if (end > t->end) {
    clear(c, w, b, t->end, end);
    t->end = end;
  }
}

/* Adds a tile's part of dV, dK and dQ. */
static void add_products(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0, int n,
                         const fa_ref_tile_spans *spans, fa_sums sums) {
  const fa_ref_coarse *x = fa_ref_coarse_of(c);
  const int m = (int)r->n, d = (int)c->d, dv = (int)c->dv;
  const double scale = c->p->scale, *k = w->k + j0 * c->d;
  double *to_dv = w->dv + j0 * c->dv, *to_dk = w->dk + j0 * c->d;
  if (!x || x->tile == 0) {
    if (sums.of_keys) {
      fa_blas_dgemm_part(FA_BLAS_T, n, dv, m, 1, w->s, n, w->d_o, dv, 1, to_dv, dv, &spans->keys);
      fa_blas_dgemm_part(FA_BLAS_T, n, d, m, scale, w->dp, n, w->q, d, 1, to_dk, d, &spans->keys);
    }
    if (sums.of_rows)
      fa_blas_dgemm_part(FA_BLAS_N, m, d, n, scale, w->dp, n, k, d, 1, w->acc, d, &spans->rows);
    return;
  }
  const fa_ref_product products[] = {{FA_BLAS_T, FA_BLAS_N, n, dv, m, 1, w->s, n, w->d_o, dv, to_dv, dv},
                                     {FA_BLAS_T, FA_BLAS_N, n, d, m, scale, w->dp, n, w->q, d, to_dk, d},
                                     {FA_BLAS_N, FA_BLAS_N, m, d, n, scale, w->dp, n, k, d, w->acc, d}};
  for (int i = 0; i < 3; ++i) fa_ref_coarse_add(x, &products[i], w->part);
}

static void write_dq(const fa_ref_call *c, const fa_ref_rows *r, const fa_ref_scratch *w) {
  for (int64_t k = 0; k < r->n; ++k)
    if (!r->left_out[k])
      memcpy(c->out->t[FA_T_DQ].value + fa_ref_q_index(c, r->e, r->h, r->row[k], c->d), w->acc + k * c->d,
             (size_t)c->d * sizeof *w->acc);
}

/* Whether the walk's sums need the tile: of a sample's strips only these keys. */
static bool tile_counts(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n, fa_sums sums) {
  if (c->sample && sums.of_keys && !fa_ref_strips_meet(c->sample, r->e->b, r->h / c->group, j0, n))
    return false;
  return fa_ref_tile_visited(c, r, j0, n);
}

static void backward_block(const fa_backward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                           fa_bound_scratch *b, fa_sums sums) {
  fa_ref_call *c = f->c;
  const int64_t keys = fa_ref_coarse_keys(c), n_tiles = (r->j_end - r->j_begin + keys - 1) / keys;
  const bool backwards = fa_ref_coarse_of(c) && fa_ref_coarse_of(c)->backwards;
  bool first = true;
  fa_ref_tile_spans spans;
  fa_ref_backward_rows_begin(c, f->rows, r, w, b);
  memset(w->acc, 0, (size_t)(r->n * c->d) * sizeof *w->acc);
  for (int64_t tile = 0; tile < n_tiles; ++tile) {
    const int64_t j0 = r->j_begin + (backwards ? n_tiles - 1 - tile : tile) * keys;
    const int n = (int)(r->j_end - j0 < keys ? r->j_end - j0 : keys);
    if (!tile_counts(c, r, j0, n, sums)) continue;
    fa_ref_backward_tile(c, f->rows, r, w, j0, n, b);
    through_chain(c, f->rows, r, w, j0, n);
    if (c->twist) fa_ref_astray_round(&c->twist->p, w->s, r->n * n);
    if (c->twist) fa_ref_astray_round(&c->twist->ds, w->dp, r->n * n);
    fa_ref_tile_spans_init(r, j0, n, &spans);
    add_products(c, r, w, j0, n, &spans, sums);
    if (b) fa_bound_backward_tile_end(c, r, j0, n, b, &spans, sums, first);
    first = false;
  }
  if (!sums.of_rows) return;
  write_dq(c, r, w);
  if (b && !first) fa_bound_backward_end(c, r, b);
}

static void add_rows(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, const fa_touched *t,
                     const double *from, int64_t width, fa_want *to, float *parts) {
  for (int64_t j = t->begin; j < t->end; ++j) {
    int64_t at = fa_ref_k_index(c, e, hk, j, width);
    fa_rows_best()->add(to->value + at, from + j * width, width);
    for (int64_t x = 0; parts && x < width; ++x) parts[at + x] += (float)fabs(from[j * width + x]);
  }
}

/* All items of the head are merged, and these keys asked for. This thread may never have loaded the head (if its items saw no key). */
static void finish_head(const fa_backward_job *f, fa_ref_scratch *w, const fa_ref_sequence *e, int64_t hk,
                        int64_t begin, int64_t end, fa_bound_scratch *b) {
  fa_ref_scratch_head(w, f->c, e, hk);
  fa_bound_head(b, f->c, w, true);
  fa_bound_backward_finish(f, e, hk, begin, end, b);
}

/* Whether the head at this place of its group has a part in the gradients. */
static bool member_counts(const fa_ref_call *c, int64_t place) {
  const fa_ref_twist *t = c->twist;
  const int64_t only = t ? t->one_member : 0, lost = t ? t->lost_member : 0;
  if (lost != 0) return place != (lost < 0 ? c->group : lost) - 1;
  return only == 0 || place == (only < 0 ? c->group : only) - 1;
}

/* What a work item is: blocks first .. end - 1 of a head's group. */
typedef struct fa_item {
  const fa_ref_sequence *e;
  int64_t hk, part, first, end;
  bool last;     /* of its head */
  int64_t queue; /* of the head */
} fa_item;

static fa_item item_at(const fa_backward_job *f, int64_t item) {
  const fa_ref_call *c = f->c;
  int64_t b = 0;
  while (f->first_item[b + 1] <= item) ++b;
  const fa_ref_sequence *e = &c->entry[b];
  /* Interleaves the heads, so that no thread waits for the preceding part of its own head. */
  const int64_t local = item - f->first_item[b], per_group = items_per_group(c, e);
  const int64_t hk = local % c->heads_kv, part = local / c->heads_kv, blocks = group_blocks(c, e);
  return (fa_item){.e = e,
                   .hk = hk,
                   .part = part,
                   .first = part * blocks / per_group,
                   .end = (part + 1) * blocks / per_group,
                   .last = part == per_group - 1,
                   .queue = b * c->heads_kv + hk};
}

/* Block n of the group, as far as it is asked for. False: it has no part in the gradients. */
static bool block_of_item(const fa_ref_call *c, const fa_item *x, int64_t n, fa_ref_rows *r) {
  const int64_t per_head = n_blocks(x->e->sq);
  if (!member_counts(c, n / per_head)) return false;
  fa_ref_rows_init(c, x->e, fa_ref_group_member(c, x->hk, n / per_head), n % per_head * FA_BLOCK_M, r);
  if (!fa_ref_rows_asked(c, r) || !fa_ref_keys_asked(c, x->hk, r)) return false;
  if (r->j_begin == r->j_end) return false; /* no visible key: all zero */
  fa_ref_coarse_align(c, r);
  return true;
}

/* Adds the item's private sums of these keys to the outputs, and to their bounds. */
static void merge_keys(const fa_backward_job *f, const fa_item *x, int thread, fa_touched t) {
  const fa_ref_call *c = f->c;
  const fa_ref_scratch *w = &f->scratch[thread];
  add_rows(c, x->e, x->hk, &t, w->dk, c->d, &c->out->t[FA_T_DK], f->parts_dk);
  add_rows(c, x->e, x->hk, &t, w->dv, c->dv, &c->out->t[FA_T_DV], f->parts_dv);
  if (f->bound) fa_bound_backward_merge(f, x->e, x->hk, t.begin, t.end, &f->bound[thread]);
}

static void backward_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_call *c = f->c;
  fa_ref_scratch *w = &f->scratch[thread];
  fa_bound_scratch *b = f->bound ? &f->bound[thread] : NULL;
  const fa_item x = item_at(f, item);
  fa_touched t = {0, 0};
  int64_t begin, end;
  fa_ref_rows r;
  for (int64_t n = x.first; n < x.end; ++n) {
    if (!block_of_item(c, &x, n, &r)) continue;
    fa_ref_scratch_head(w, c, x.e, x.hk);
    touch(c, w, b, &t, r.j_begin, r.j_end);
    backward_block(f, &r, w, b, (fa_sums){true, true});
  }
  fa_ref_order_wait(f->order, x.queue, x.part);
  if (fa_ref_gradients_asked(c, x.e, x.hk, &begin, &end)) {
    merge_keys(f, &x, thread, t);
    if (b && x.last) finish_head(f, w, x.e, x.hk, begin, end, b);
  }
  fa_ref_order_done(f->order, x.queue);
}

/* ---- a sample ---- */

/* dQ of a block of its rows. */
static void rows_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_scratch *w = &f->scratch[thread];
  const fa_ref_rows *r = &f->blocks.block[item];
  if (r->j_begin == r->j_end) return;
  fa_ref_scratch_head(w, f->c, r->e, fa_ref_kv_head(f->c, r->h));
  backward_block(f, r, w, f->bound ? &f->bound[thread] : NULL, (fa_sums){.of_rows = true});
}

static fa_touched keys_of(const fa_ref_sequence *e, const fa_ref_place *strip) {
  const int64_t end = strip->i + FA_STRIP_KEYS;
  return (fa_touched){strip->i, end < e->sk ? end : e->sk};
}

/* Zeroes the private sums of all tiles that meet the strip, whose keys are not all in it. */
static void clear_strip(const fa_ref_call *c, const fa_ref_sequence *e, const fa_ref_place *strip,
                        fa_ref_scratch *w, fa_bound_scratch *b) {
  const int64_t first = strip->i < FA_BLOCK_N ? 0 : strip->i - FA_BLOCK_N,
                wide = strip->i + FA_STRIP_KEYS + FA_BLOCK_N, end = wide < e->sk ? wide : e->sk;
  clear(c, w, b, first, end);
}

static bool strips_see(const fa_ref_call *c, const fa_item *x, const fa_ref_rows *r) {
  return fa_ref_strips_meet(c->sample, x->e->b, x->hk, r->j_begin, r->j_end - r->j_begin);
}

/* dK and dV of its strips: the blocks of a work item of the whole, and in the same order, but of their tiles only those
 * that meet a strip. */
static void strips_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_call *c = f->c;
  fa_ref_scratch *w = &f->scratch[thread];
  fa_bound_scratch *b = f->bound ? &f->bound[thread] : NULL;
  const fa_item x = item_at(f, item);
  int64_t n_strips;
  fa_ref_rows r;
  const fa_ref_place *strip = fa_ref_strips_of(c->sample, x.e->b, x.hk, &n_strips);
  for (int64_t s = 0; s < n_strips; ++s) clear_strip(c, x.e, &strip[s], w, b);
  for (int64_t n = x.first; n_strips > 0 && n < x.end; ++n) {
    if (!block_of_item(c, &x, n, &r) || !strips_see(c, &x, &r)) continue;
    fa_ref_scratch_head(w, c, x.e, x.hk);
    backward_block(f, &r, w, b, (fa_sums){.of_keys = true});
  }
  fa_ref_order_wait(f->order, x.queue, x.part);
  for (int64_t s = 0; s < n_strips; ++s) {
    const fa_touched keys = keys_of(x.e, &strip[s]);
    merge_keys(f, &x, thread, keys);
    if (b && x.last) finish_head(f, w, x.e, x.hk, keys.begin, keys.end, b);
  }
  fa_ref_order_done(f->order, x.queue);
}

/* A bound of dQ in kernels of narrow formats depends on what may overflow in the tile's other rows. Where the data are not
 * noise, an exponential may be unknown, which counts as that. */
static bool rows_stay_apart(const fa_ref_call *c) {
  return c->profile && (!c->generic || c->p->scale == 0 || fa_bound_may_overflow(c));
}

static fa_status outputs_init(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  bool varlen = p->cu_seqlens_q.n > 0, bounds = c->profile != NULL;
  int64_t q[4] = {p->batch, p->seqlen_q, p->heads_q, p->head_dim};
  int64_t k[4] = {p->batch, p->seqlen_k, p->heads_kv, p->head_dim};
  int64_t q3[3] = {fa_problem_total_q(p), p->heads_q, p->head_dim};
  int64_t k3[3] = {fa_problem_total_k(p), p->heads_kv, p->head_dim};
  int64_t v[4] = {k[0], k[1], k[2], p->head_dim_v}, v3[3] = {k3[0], k3[1], p->head_dim_v};
  int rank = varlen ? 3 : 4;
  fa_status status = fa_want_init(&c->out->t[FA_T_DQ], p->dtype, rank, varlen ? q3 : q, bounds, err);
  if (!status) status = fa_want_init(&c->out->t[FA_T_DK], p->dtype, rank, varlen ? k3 : k, bounds, err);
  if (!status) status = fa_want_init(&c->out->t[FA_T_DV], p->dtype, rank, varlen ? v3 : v, bounds, err);
  if (!status && c->sample) status = fa_ref_span_rows(c, &c->out->t[FA_T_DQ], err);
  if (!status && c->sample) status = fa_ref_span_keys(c, &c->out->t[FA_T_DK], err);
  if (!status && c->sample) status = fa_ref_span_keys(c, &c->out->t[FA_T_DV], err);
  return status;
}

static fa_status backward_run(fa_ref_call *c, fa_error *err) {
  fa_backward_job f = {.c = c, .rows = fa_rows_best()};
  fa_status status = FA_OK;
  int n_ready = 0, n_ready_bound = 0, n_threads = 1;
  f.first_item = calloc((size_t)c->p->batch + 1, sizeof *f.first_item);
  f.order = fa_ref_order_new(c->p->batch * c->heads_kv);
  if (!f.first_item || !f.order) goto out_of_memory;
  for (int64_t b = 0; b < c->p->batch; ++b)
    f.first_item[b + 1] = f.first_item[b] + c->heads_kv * items_per_group(c, &c->entry[b]);
  if (c->sample && (status = fa_ref_gather(c, rows_stay_apart(c), &f.blocks, err))) goto out;
  const int64_t n_parts = f.first_item[c->p->batch], n_items = n_parts > f.blocks.n ? n_parts : f.blocks.n;
  if (n_items > 0) n_threads = n_items < c->n_threads ? (int)n_items : c->n_threads;
  f.scratch = calloc((size_t)n_threads, sizeof *f.scratch);
  f.bound = c->profile ? calloc((size_t)n_threads, sizeof *f.bound) : NULL;
  if (!f.scratch || (c->profile && !f.bound)) goto out_of_memory;
  if (heads_apart(c)) {
    f.parts_dk = calloc((size_t)c->out->t[FA_T_DK].n + 1, sizeof *f.parts_dk);
    f.parts_dv = calloc((size_t)c->out->t[FA_T_DV].n + 1, sizeof *f.parts_dv);
    if (!f.parts_dk || !f.parts_dv) goto out_of_memory;
  }
  for (; n_ready < n_threads; ++n_ready)
    if ((status = fa_ref_scratch_init(&f.scratch[n_ready], c, true, err))) goto out;
  for (; c->profile && n_ready_bound < n_threads; ++n_ready_bound)
    if ((status =
             fa_bound_scratch_init(&f.bound[n_ready_bound], c, true, n_ready_bound ? f.bound : NULL, err)))
      goto out;
  if (c->sample) fa_parallel(n_threads, f.blocks.n, rows_item, &f);
  fa_parallel(n_threads, n_parts, c->sample ? strips_item : backward_item, &f);
  if (c->profile) fa_bound_backward_derivative(c, f.bound, n_threads);
  goto out;
out_of_memory:
  status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
out:
  for (int t = 0; t < n_ready; ++t) fa_ref_scratch_free(&f.scratch[t]);
  for (int t = 0; t < n_ready_bound; ++t) fa_bound_scratch_free(&f.bound[t]);
  free(f.scratch);
  free(f.bound);
  free(f.parts_dk);
  free(f.parts_dv);
  fa_ref_blocks_free(&f.blocks);
  free(f.first_item);
  fa_ref_order_free(f.order);
  return status;
}

fa_status fa_ref_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                          const fa_tensor *given_lse, const fa_wants *forward, const fa_ref_options *opt,
                          fa_wants *out, fa_error *err) {
  fa_ref_call c;
  fa_status status = fa_ref_call_init(&c, p, in, opt, out, err);
  if (status || (status = fa_ref_mods_init(&c, err))) goto out;
  FA_ASSERT(forward);
  c.given_o = given_o;
  c.given_lse = given_lse;
  c.forward = forward;
  if ((status = outputs_init(&c, err))) goto out;
  if ((status = backward_run(&c, err))) goto out;
  const bool whole = !opt->twist || opt->twist->n_rows + opt->twist->n_keys == 0;
  if (whole && p->bias.present && p->bias.grad) status = fa_ref_dbias(&c, err);
  if (whole && status == FA_OK) status = fa_ref_dbuffers(&c, err);
  if (status == FA_OK) status = fa_ref_mods_status(&c, err);
out:
  fa_ref_mods_free(&c);
  fa_ref_call_free(&c);
  if (status) fa_wants_free(out);
  return status;
}
