/* dBias: its own pass, so that sums over broadcast axes have a fixed order on any number of threads.
 *
 * An item is one query block of one (batch, head) of dBias; it walks every (entry, head, row) that shares the
 * bias element. Costs two more GEMMs a tile, in calls that have a bias gradient only. */
#include "ref/backward.h"

#include <stdlib.h>
#include <string.h>

typedef struct fa_dbias_job {
  fa_backward_job base;
  int64_t shape[4]; /* of dBias */
  int64_t blocks;   /* query blocks of one (batch, head) of dBias: 1 when the query axis is broadcast */
} fa_dbias_job;

static void add_block(const fa_dbias_job *f, int thread, int64_t b, int64_t h, int64_t i0) {
  fa_ref_call *c = f->base.c;
  fa_ref_scratch *w = &f->base.scratch[thread];
  fa_want *out = &c->out->t[FA_T_DBIAS];
  const fa_ref_entry *e = &c->entry[b];
  fa_ref_rows r;
  fa_ref_rows_init(c, e, h, i0, &r);
  if (r.j_begin == r.j_end) return;
  fa_ref_scratch_head(w, c, e, h / c->group);
  fa_ref_backward_rows_load(c, &r, w);
  int64_t ob = f->shape[0] == 1 ? 0 : b, oh = f->shape[1] == 1 ? 0 : h;
  for (int64_t j0 = r.j_begin; j0 < r.j_end; j0 += FA_BLOCK_N) {
    int64_t n = r.j_end - j0 < FA_BLOCK_N ? r.j_end - j0 : FA_BLOCK_N;
    if (!fa_ref_tile_visited(c, &r, j0, n)) continue;
    fa_ref_backward_tile(c, f->base.rows, &r, w, j0, n);
    for (int64_t k = 0; k < r.n; ++k) {
      int64_t oi = f->shape[2] == 1 ? 0 : r.i0 + k;
      double *to = out->value + ((ob * f->shape[1] + oh) * f->shape[2] + oi) * f->shape[3] + j0;
      for (int64_t j = 0; j < n; ++j) to[j] += w->dp[k * n + j];
    }
  }
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

fa_status fa_ref_dbias(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  fa_dbias_job f = {.base = {.c = c, .rows = fa_rows_best()}};
  f.shape[0] = p->bias.per_batch ? p->batch : 1;
  f.shape[1] = p->bias.per_head ? p->heads_q : 1;
  f.shape[2] = p->bias.per_query ? p->seqlen_q : 1;
  f.shape[3] = p->seqlen_k;
  f.blocks = f.shape[2] > 1 ? (f.shape[2] + FA_BLOCK_M - 1) / FA_BLOCK_M : 1;
  int n_ready = 0, n_threads = c->n_threads;
  fa_status status = fa_want_init(&c->out->t[FA_T_DBIAS], p->dtype, 4, f.shape, c->profile != NULL, err);
  int64_t n_items = f.shape[0] * f.shape[1] * f.blocks;
  if (status || c->out->t[FA_T_DBIAS].n == 0) return status;
  if (n_items < n_threads) n_threads = (int)n_items;
  f.base.scratch = calloc((size_t)n_threads, sizeof *f.base.scratch);
  if (!f.base.scratch) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  for (; n_ready < n_threads; ++n_ready)
    if ((status = fa_ref_scratch_init(&f.base.scratch[n_ready], c, true, err))) goto out;
  fa_ref_parallel(n_threads, n_items, dbias_item, &f);
out:
  for (int t = 0; t < n_ready; ++t) fa_ref_scratch_free(&f.base.scratch[t]);
  free(f.base.scratch);
  return status;
}
