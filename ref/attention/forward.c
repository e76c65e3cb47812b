/* Forward values: online softmax over key blocks, two GEMMs per tile, in double. */
#include "cases/threads/parallel.h"
#include "ref/attention/amax.h"
#include "ref/attention/coarse.h"
#include "ref/attention/outputs.h"
#include "ref/bounds/stored.h"
#include "ref/bounds/terms.h"
#include "ref/engine/dropout.h"
#include "ref/math/blas.h"
#include "ref/math/rows.h"
#include "ref/merge/passes.h"
#include "ref/mods/tile.h"
#include "ref/reference.h"
#include "ref/tiles/gather.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"
#include "ref/tiles/sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An item is one query block of one head. The items of a key/value head are consecutive, so that a thread
 * converts its keys only once. */
typedef struct fa_forward_job {
  fa_ref_call *c;
  fa_ref_scratch *scratch; /* [n_threads] */
  fa_bound_scratch *bound; /* [n_threads]; NULL: values only */
  const fa_rows *rows;
  int64_t *first_item;  /* [batch + 1] */
  fa_ref_blocks blocks; /* of a sample; an item is then one of these */
} fa_forward_job;

static int64_t n_blocks(int64_t n) {
  return (n + FA_BLOCK_M - 1) / FA_BLOCK_M;
}

static double empty_lse(const fa_problem *p) {
  return p->empty_lse == FA_EMPTY_POS_INF ? INFINITY : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY : 0;
}

static void softmax_row(const fa_forward_job *f, fa_ref_scratch *w, int64_t k, double *x, int64_t n) {
  const int64_t dv = f->c->dv;
  double top = f->rows->max(x, n);
  if (top > w->m[k]) {
    double by = exp(w->m[k] - top);
    w->m[k] = top;
    w->l[k] *= by;
    f->rows->scale(w->acc + k * dv, dv, by);
  }
  w->l[k] += f->rows->exp(x, n, w->m[k]);
}

/* Turns a tile's scores into P in w->s, relative to the running maximum, and rescales what is accumulated so
 * far. */
static void softmax_tile(const fa_forward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                         const double *scores, int64_t j0, int64_t n, fa_ref_astray *astray) {
  const fa_ref_call *c = f->c;
  for (int64_t k = 0; k < r->n; ++k) {
    double *x = w->s + k * n;
    int64_t begin, end;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    if (scores != w->s) memcpy(x + begin, scores + k * n + begin, (size_t)(end - begin) * sizeof *x);
    if (astray)
      fa_ref_astray_row(c, f->rows, w, k, x + begin, j0 + begin, end - begin, astray);
    else
      softmax_row(f, w, k, x + begin, end - begin);
    memset(x, 0, (size_t)begin * sizeof *x);
    memset(x + end, 0, (size_t)(n - end) * sizeof *x);
    if (c->p->dropout.p > 0) {
      fa_ref_dropout_row(c, r->e, r->h, r->row[k], j0 + begin, end - begin, w->z);
      f->rows->multiply(x + begin, w->z, end - begin);
    }
  }
}

/* A row without keys has the sink's logit, or what the case says. */
static fa_ref_lse lse_of_row(const fa_problem *p, const fa_ref_scratch *w, int64_t k) {
  const bool with_sink = p->sinks.present && p->sinks.in_lse;
  const double m = with_sink ? w->m[k] : w->key_m[k], l = with_sink ? w->l[k] : w->key_l[k];
  return l == 0 ? (fa_ref_lse){empty_lse(p), 0} : fa_ref_lse_of(m, l);
}

static void write_rows(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w) {
  for (int64_t k = 0; k < r->n; ++k) {
    if (r->left_out[k]) continue;
    double *o = c->out->t[FA_T_O].value + fa_ref_q_index(c, r->e, r->h, r->row[k], c->dv);
    const fa_want *lse = &c->out->t[FA_T_LSE];
    const int64_t at = fa_ref_lse_index(c, r->e, r->h, r->row[k]);
    const bool empty = w->key_l[k] == 0;
    const fa_ref_lse known = lse_of_row(c->p, w, k);
    lse->value[at] = known.value;
    lse->rest[at] = known.rest;
    fa_ref_amax_row(w, k);
    for (int64_t x = 0; x < c->dv; ++x) o[x] = empty ? 0 : w->acc[k * c->dv + x] / w->l[k];
  }
}

/* A tile's scores before the chain, in x. */
static void raw_scores(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0, int n,
                       double *x) {
  const fa_ref_coarse *coarse = fa_ref_coarse_of(c);
  const int m = (int)r->n, d = (int)c->d;
  const double *k = w->k + j0 * c->d;
  const fa_ref_product product = {FA_BLAS_N, FA_BLAS_T, m, n, d, c->p->scale, w->q, d, k, d, x, n};
  if (coarse && coarse->scores)
    fa_ref_coarse_scores(coarse, &product, w->part);
  else
    fa_blas_dgemm(FA_BLAS_N, FA_BLAS_T, m, n, d, c->p->scale, w->q, d, k, d, 0, x, n);
}

/* acc += P V of a tile. */
static void add_values(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, int64_t j0, int n) {
  const fa_ref_coarse *coarse = fa_ref_coarse_of(c);
  const int m = (int)r->n, dv = (int)c->dv;
  const double *v = w->v + j0 * c->dv;
  const fa_ref_product product = {FA_BLAS_N, FA_BLAS_N, m, dv, n, 1, w->s, n, v, dv, w->acc, dv};
  fa_ref_tile_spans spans;
  if (coarse && coarse->tile > 0) {
    fa_ref_coarse_add(coarse, &product, w->part);
    return;
  }
  fa_ref_tile_spans_init(r, j0, n, &spans);
  fa_blas_dgemm_part(FA_BLAS_N, m, dv, n, 1, w->s, n, v, dv, 1, w->acc, dv, &spans.rows);
}

static bool walks_backwards(const fa_ref_call *c, const fa_ref_astray *astray) {
  const fa_ref_coarse *coarse = fa_ref_coarse_of(c);
  return coarse ? coarse->backwards : astray && c->twist->walk.backwards;
}

static void forward_block(const fa_forward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                          fa_ref_astray *astray) {
  fa_ref_call *c = f->c;
  const int64_t keys = fa_ref_coarse_keys(c);
  for (int64_t k = 0; k < r->n; ++k) {
    w->m[k] = -INFINITY;
    w->l[k] = 0;
  }
  memset(w->acc, 0, (size_t)(r->n * c->dv) * sizeof *w->acc);
  const int64_t n_tiles = (r->j_end - r->j_begin + keys - 1) / keys;
  const bool backwards = walks_backwards(c, astray);
  for (int64_t tile = 0; tile < n_tiles; ++tile) {
    const int64_t j0 = r->j_begin + (backwards ? n_tiles - 1 - tile : tile) * keys;
    const int64_t n = r->j_end - j0 < keys ? r->j_end - j0 : keys;
    if (!fa_ref_tile_visited(c, r, j0, n)) continue;
    double *x = w->scores ? w->scores + r->n * (j0 - r->j_begin) : w->s;
    raw_scores(c, r, w, j0, (int)n, x);
    fa_ref_score_tile(c, r, j0, n, x, n, NULL, w->mod);
    softmax_tile(f, r, w, x, j0, n, astray);
    add_values(c, r, w, j0, (int)n);
  }
  fa_ref_sink_join(c, r, w);
  write_rows(c, r, w);
}

static void forward_rows(const fa_forward_job *f, int thread, const fa_ref_rows *r) {
  fa_ref_call *c = f->c;
  fa_ref_scratch *w = &f->scratch[thread];
  if (r->j_end > r->j_begin) {
    fa_ref_scratch_head(w, c, r->e, fa_ref_kv_head(c, r->h));
    fa_ref_load_q(c, FA_T_Q, r->e, r->h, r->row, r->n, w->q);
  }
  fa_ref_astray astray = {{0}};
  forward_block(f, r, w, c->twist && c->twist->walk.tile > 0 ? &astray : NULL);
  if (f->bound && r->j_end > r->j_begin) fa_bound_forward_block(c, r, w, &f->bound[thread]);
  if (f->bound) fa_bound_sink_rows(c, r, w);
  if (c->twist) fa_ref_astray_end(c, r, w, &astray);
}

static void sampled_item(void *context, int thread, int64_t item) {
  const fa_forward_job *f = context;
  forward_rows(f, thread, &f->blocks.block[item]);
}

static void forward_item(void *context, int thread, int64_t item) {
  const fa_forward_job *f = context;
  fa_ref_call *c = f->c;
  int64_t b = 0;
  while (f->first_item[b + 1] <= item) ++b;
  const fa_ref_sequence *e = &c->entry[b];
  int64_t local = item - f->first_item[b], blocks = n_blocks(e->sq), h = local / blocks;
  fa_ref_rows r;
  fa_ref_rows_init(c, e, h, (blocks - 1 - local % blocks) * FA_BLOCK_M, &r); /* causal: longest first */
  if (!fa_ref_rows_asked(c, &r)) return;
  fa_ref_coarse_align(c, &r);
  forward_rows(f, thread, &r);
}

/* Keep masks are 1 / 0 where the pair is visible, NaN elsewhere. */
static void keep_mask(const fa_ref_call *c, const fa_tensor *t, fa_want *w) {
  for (int64_t n = 0; n < w->n; ++n) w->value[n] = NAN;
  for (int64_t b = 0; b < c->p->batch && b < t->shape[0]; ++b)
    for (int64_t h = 0; h < c->heads_q; ++h)
      for (int64_t i = 0; i < c->entry[b].sq && i < t->shape[2]; ++i) {
        int64_t lo, hi;
        fa_ref_visible_range(c, &c->entry[b], i, &lo, &hi);
        for (int64_t j = lo; j < hi && j < t->shape[3]; ++j)
          w->value[((b * t->shape[1] + h) * t->shape[2] + i) * t->shape[3] + j] =
              fa_ref_dropout_keep(c->p, b, h, i, j);
      }
}

static fa_status keep_masks(fa_ref_call *c, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_P_DEBUG, FA_T_DROPOUT_KEEP};
  for (int n = 0; n < 2; ++n) {
    const fa_tensor *t = &c->in->t[ids[n]];
    if (!t->data) continue;
    fa_status status = fa_want_init(&c->out->t[ids[n]], t->dtype, t->rank, t->shape, false, err);
    if (status) return status;
    if (c->out->t[ids[n]].n > 0) keep_mask(c, t, &c->out->t[ids[n]]);
  }
  return FA_OK;
}

/* Until rows are walked over, anything may stand there. */
static fa_status magnitudes_init(const fa_ref_call *c, fa_error *err) {
  fa_want *w = &c->out->t[FA_T_P_DEBUG];
  if (!c->profile || w->n == 0) return FA_OK;
  w->least = calloc((size_t)w->n, sizeof *w->least);
  w->most = malloc((size_t)w->n * sizeof *w->most);
  if (!w->least || !w->most) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  for (int64_t e = 0; e < w->n; ++e) w->most[e] = INFINITY;
  return FA_OK;
}

/* What is behind the last rows of sequences is not compared. */
static void leave_padding_out(const fa_ref_call *c, fa_want *lse) {
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t h = 0; h < c->heads_q; ++h)
      for (int64_t i = c->entry[b].sq; i < c->p->seqlen_q; ++i)
        lse->value[fa_ref_lse_index(c, &c->entry[b], h, i)] = NAN;
}

fa_status fa_ref_forward_outputs(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  const bool varlen = p->cu_seqlens_q.n > 0, bounds = c->profile != NULL, flat = varlen && !p->lse_padded;
  int64_t total = fa_problem_total_q(p);
  int64_t o[4] = {p->batch, p->seqlen_q, p->heads_q, p->head_dim_v},
          o3[3] = {total, p->heads_q, p->head_dim_v};
  int64_t lse[3] = {p->batch, p->heads_q, p->seqlen_q}, lse2[2] = {p->heads_q, total};
  __typeof__(fa_want_init) *make = c->shapes_alone ? fa_want_init_unset : fa_want_init;
  fa_status status = make(&c->out->t[FA_T_O], p->dtype, varlen ? 3 : 4, varlen ? o3 : o, bounds, err);
  fa_want *want = &c->out->t[FA_T_LSE];
  if (!status) status = make(want, FA_F32, flat ? 2 : 3, flat ? lse2 : lse, bounds, err);
  if (status || want->n == 0) return status;
  want->rest = calloc((size_t)want->n, sizeof *want->rest);
  if (bounds) want->sum_error = calloc((size_t)want->n, sizeof *want->sum_error);
  if (!want->rest || (bounds && !want->sum_error))
    return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  if (c->sample) status = fa_ref_span_rows(c, want, err);
  if (c->sample && status == FA_OK) status = fa_ref_span_rows(c, &c->out->t[FA_T_O], err);
  return status;
}

static fa_status forward_run(fa_ref_call *c, fa_error *err) {
  fa_forward_job f = {.c = c, .rows = fa_rows_best()};
  fa_status status = FA_OK;
  fa_ref_team team = {0};
  f.first_item = calloc((size_t)c->p->batch + 1, sizeof *f.first_item);
  if (!f.first_item) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  for (int64_t b = 0; b < c->p->batch; ++b)
    f.first_item[b + 1] = f.first_item[b] + c->heads_q * n_blocks(c->entry[b].sq);
  /* A row's bounds are its own in a forward. */
  if (c->sample && (status = fa_ref_gather(c, false, &f.blocks, err))) goto out;
  const int64_t n_items = c->sample ? f.blocks.n : f.first_item[c->p->batch];
  if ((status = fa_ref_team_init(&team, c, false, n_items, err))) goto out;
  f.scratch = team.scratch;
  f.bound = team.bound;
  fa_parallel(team.n, n_items, c->sample ? sampled_item : forward_item, &f);
  fa_ref_amax_finish(c, &team);
out:
  fa_ref_team_free(&team);
  fa_ref_blocks_free(&f.blocks);
  free(f.first_item);
  return status;
}

/* One scale for all LSEs of a head. */
static void lse_scale(fa_want *w) {
  int64_t width = w->n > 0 ? w->shape[w->rank - 1] : 1;
  for (int64_t n = 0; n < w->n; ++n) {
    float size = isfinite(w->value[n]) ? (float)(1 + fabs(w->value[n])) : 1;
    if (size > w->scale[n / width]) w->scale[n / width] = size;
  }
}

void fa_ref_forward_finish(fa_ref_call *c) {
  fa_want *lse = &c->out->t[FA_T_LSE];
  if (lse->n > 0 && c->p->lse_padded) leave_padding_out(c, lse);
  if (c->profile) lse_scale(lse);
}

fa_status fa_ref_forward(const fa_problem *p, const fa_tensors *in, const fa_ref_options *opt, fa_wants *out,
                         fa_error *err) {
  fa_ref_call c;
  if (p->family == FA_MERGE) return fa_ref_merge_forward(p, in, opt, out, err);
  fa_status status = fa_ref_call_init(&c, p, in, opt, out, err);
  if (status || (status = fa_ref_mods_init(&c, err))) goto out;
  if ((status = fa_ref_forward_outputs(&c, err))) goto out;
  if ((status = fa_ref_amax_outputs(&c, err))) goto out;
  if ((status = keep_masks(&c, err)) || (status = magnitudes_init(&c, err))) goto out;
  if ((status = fa_ref_rotate_all(&c, err))) goto out;
  if ((status = forward_run(&c, err))) goto out;
  if ((status = fa_ref_mods_status(&c, err))) goto out;
  fa_ref_forward_finish(&c);
  if (!opt->unscaled_o) fa_bound_store_o(p, in, &out->t[FA_T_O]);
  if (p->kvcache.present) status = fa_ref_cache_after(&c, err);
out:
  fa_ref_mods_free(&c);
  fa_ref_call_free(&c);
  if (status) fa_wants_free(out);
  return status;
}
