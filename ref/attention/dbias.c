/* dBias has its own pass, so that sums over broadcast axes have a fixed order on any number of threads.
 *
 * A work item is one query block of one (batch, head) of dBias; it walks every (sequence, head, row) that
 * shares the bias element. This costs two more GEMMs per tile, only in calls with a bias gradient. */
#include "cases/threads/parallel.h"
#include "ref/attention/backward.h"
#include "ref/attention/outputs.h"
#include "ref/attention/team.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct fa_dbias_job {
  fa_backward_job base;
  int64_t shape[4]; /* of dBias */
  int64_t blocks;   /* query blocks of one (batch, head) of dBias: 1 if the query axis is broadcast */
} fa_dbias_job;

/* During summation, accum holds the errors and quant the magnitudes. */
static void add_bound_row(const fa_ref_call *c, const fa_bound_scratch *b, int64_t k, int64_t n, fa_want *out,
                          int64_t at) {
  double u_p = c->profile->u_p_in_ds;
  const bool lost = b->overflows || b->ds_overflows; /* somewhere in the tile */
  for (int64_t j = 0; j < n; ++j) {
    out->accum[at + j] += fa_bound_dbias_term(b->ge[k * n + j] + u_p * b->g[k * n + j], b->unit_ds);
    out->quant[at + j] += fa_bound_dbias_term(b->g[k * n + j], b->unit_ds);
    if (lost && b->ge[k * n + j] > 0) out->accum[at + j] = INFINITY;
  }
}

static void add_block(const fa_dbias_job *f, int thread, int64_t entry, int64_t h, int64_t i0) {
  fa_ref_call *c = f->base.c;
  fa_ref_scratch *w = &f->base.scratch[thread];
  fa_bound_scratch *b = f->base.bound ? &f->base.bound[thread] : NULL;
  fa_want *out = &c->out->t[FA_T_DBIAS];
  const fa_ref_sequence *e = &c->entry[entry];
  fa_ref_rows r;
  fa_ref_rows_init(c, e, h, i0, &r);
  if (r.j_begin == r.j_end) return;
  fa_ref_scratch_head(w, c, e, fa_ref_kv_head(c, h));
  fa_ref_backward_rows_begin(c, f->base.rows, &r, w, b);
  int64_t ob = f->shape[0] == 1 ? 0 : entry, oh = f->shape[1] == 1 ? 0 : h;
  for (int64_t j0 = r.j_begin; j0 < r.j_end; j0 += FA_BLOCK_N) {
    int64_t n = r.j_end - j0 < FA_BLOCK_N ? r.j_end - j0 : FA_BLOCK_N;
    if (!fa_ref_tile_visited(c, &r, j0, n)) continue;
    fa_ref_backward_tile(c, f->base.rows, &r, w, j0, n, b);
    for (int64_t k = 0; k < r.n; ++k) {
      int64_t oi = f->shape[2] == 1 ? 0 : r.i0 + k;
      int64_t at = ((ob * f->shape[1] + oh) * f->shape[2] + oi) * f->shape[3] + j0;
      for (int64_t j = 0; j < n; ++j) out->value[at + j] += w->dp[k * n + j];
      if (b) add_bound_row(c, b, k, n, out, at);
    }
  }
  for (int64_t k = 0; b && k < r.n; ++k) /* before the cancellation in P (Z dP - delta) */
    out->scale[(ob * f->shape[1] + oh) * f->shape[2] + (f->shape[2] == 1 ? 0 : r.i0 + k)] +=
        (float)(b->row_terms[k] * b->unit_ds);
}

static void dbias_item(void *context, int thread, int64_t item) {
  const fa_dbias_job *f = context;
  const fa_ref_call *c = f->base.c;
  int64_t block = item % f->blocks, oh = item / f->blocks % f->shape[1], ob = item / f->blocks / f->shape[1];
  int64_t b_end = f->shape[0] == 1 ? c->p->batch : ob + 1, h_end = f->shape[1] == 1 ? c->heads_q : oh + 1;
  for (int64_t b = ob; b < b_end; ++b)
    for (int64_t h = oh; h < h_end; ++h) {
      if (f->shape[2] > 1) {
        if (block * FA_BLOCK_M < c->entry[b].sq) add_block(f, thread, b, h, block * FA_BLOCK_M);
      } else {
        for (int64_t i0 = 0; i0 < c->entry[b].sq; i0 += FA_BLOCK_M) add_block(f, thread, b, h, i0);
      }
    }
}

static void finish(const fa_ref_call *c, fa_want *out) {
  const int64_t n = fa_bound_dbias_terms(c->p);
  for (int64_t x = 0; x < out->n; ++x) {
    if (out->accum[x] == 0 && out->quant[x] == 0 && out->value[x] == 0)
      continue; /* no visible pair: must be exactly 0 */
    out->accum[x] = fa_bound_dbias(c->profile, n, out->accum[x], out->quant[x]);
    out->quant[x] = 0;
  }
}

fa_status fa_ref_dbias_output(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  const int64_t shape[4] = {p->bias.per_batch ? p->batch : 1, p->bias.per_head ? p->heads_q : 1,
                            p->bias.per_query ? p->seqlen_q : 1, p->seqlen_k};
  return fa_want_init(&c->out->t[FA_T_DBIAS], p->dtype, 4, shape, c->profile != NULL, err);
}

fa_status fa_ref_dbias(fa_ref_call *c, fa_error *err) {
  fa_dbias_job f = {.base = {.c = c, .rows = fa_rows_best()}};
  fa_ref_team team = {0};
  fa_want *out = &c->out->t[FA_T_DBIAS];
  fa_status status = fa_ref_dbias_output(c, err);
  if (status || out->n == 0) return status;
  memcpy(f.shape, out->shape, sizeof f.shape);
  f.blocks = f.shape[2] > 1 ? (f.shape[2] + FA_BLOCK_M - 1) / FA_BLOCK_M : 1;
  const int64_t n_items = f.shape[0] * f.shape[1] * f.blocks;
  status = fa_ref_team_init(&team, c, true, n_items, err);
  f.base.scratch = team.scratch;
  f.base.bound = team.bound;
  for (int t = 0; team.bound && t < team.n; ++t) team.bound[t].plain = true;
  if (status == FA_OK) fa_parallel(team.n, n_items, dbias_item, &f);
  if (status == FA_OK && c->profile) finish(c, out);
  fa_ref_team_free(&team);
  return status;
}
