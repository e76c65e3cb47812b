/* The expressions of a call: setup, teardown, and the tiles that mask_mod gives. */
#include "cases/vocabulary/problem_expr.h"
#include "ref/mods/tile.h"

#include <stdlib.h>
#include <string.h>

fa_status fa_ref_mod_scratch_init(fa_ref_mod_scratch **out, const fa_ref_call *c, bool keep_before,
                                  fa_error *err) {
  *out = NULL;
  if (!c->mods) return FA_OK;
  fa_ref_mod_scratch *m = calloc(1, sizeof *m);
  if (!m) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  *out = m;
  fa_status status = fa_ref_expr_init(&m->score, &c->mods->score, c->in, err);
  if (status == FA_OK) status = fa_ref_expr_init(&m->mask, &c->mods->mask, c->in, err);
  /* Masks must not depend on approximations, so kernels compute them with accurate functions. */
  m->score.fast = c->profile && c->profile->fast_functions;
  if (status != FA_OK || !keep_before || c->mods->score.n == 0) return status;
  const int64_t rows = c->max_sq < FA_BLOCK_M ? c->max_sq : FA_BLOCK_M;
  const int64_t keys = c->max_sk < FA_BLOCK_N ? c->max_sk : FA_BLOCK_N;
  m->before = calloc((size_t)(rows * keys) + 1, sizeof *m->before);
  m->before_error = calloc((size_t)(rows * keys) + 1, sizeof *m->before_error);
  m->hidden = calloc((size_t)(rows * keys) + 1, sizeof *m->hidden);
  if (m->before && m->before_error && m->hidden) return FA_OK;
  return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
}

void fa_ref_mod_scratch_free(fa_ref_mod_scratch *m) {
  if (!m) return;
  fa_ref_expr_free(&m->score);
  fa_ref_expr_free(&m->mask);
  free(m->before);
  free(m->before_error);
  free(m->hidden);
  free(m);
}

/* ---- tiles from mask_mod ---- */

/* Counts, per tile of row i, the pairs that exist and those that mask_mod keeps. */
static void count_row(const fa_ref_call *c, fa_ref_mod_scratch *m, const fa_ref_sequence *e, int64_t h,
                      int64_t i, int64_t *visible, int64_t *exist) {
  const int64_t width = c->p->block_sparse.kv_block;
  uint8_t hidden[FA_BLOCK_N];
  for (int64_t j0 = 0; j0 < e->sk; j0 += FA_BLOCK_N) {
    fa_ref_mod_row r = {c, m, e, h, i, j0, e->sk - j0 < FA_BLOCK_N ? e->sk - j0 : FA_BLOCK_N};
    fa_ref_mods_mask(&r, hidden);
    for (int64_t j = 0; j < r.n; ++j) {
      ++exist[(j0 + j) / width];
      visible[(j0 + j) / width] += !hidden[j];
    }
  }
}

static void map_head(const fa_ref_call *c, fa_ref_mod_scratch *m, const fa_ref_sequence *e, int64_t h,
                     uint8_t *map, int64_t *counts) {
  const fa_ref_mods *mods = c->mods;
  int64_t *visible = counts, *exist = counts + mods->n_kv;
  for (int64_t q = 0; q < mods->n_q; ++q) {
    const int64_t first = q * c->p->block_sparse.q_block, end = first + c->p->block_sparse.q_block;
    memset(counts, 0, (size_t)(2 * mods->n_kv) * sizeof *counts);
    for (int64_t i = first; i < end && i < e->sq; ++i) count_row(c, m, e, h, i, visible, exist);
    for (int64_t k = 0; k < mods->n_kv; ++k)
      map[q * mods->n_kv + k] = visible[k] == 0          ? FA_TILE_UNLISTED
                                : visible[k] == exist[k] ? FA_TILE_FULL
                                                         : FA_TILE_PARTIAL;
  }
}

/* Heads and sequences share a map if mask_mod does not depend on them. */
static void map_sizes(const fa_ref_call *c, fa_ref_mods *m) {
  const fa_block_sparse *s = &c->p->block_sparse;
  m->n_q = (c->p->seqlen_q + s->q_block - 1) / s->q_block;
  m->n_kv = (c->p->seqlen_k + s->kv_block - 1) / s->kv_block;
  bool sequences_differ = fa_expr_uses(&m->mask, FA_EXPR_B);
  for (int64_t b = 1; b < c->p->batch; ++b)
    sequences_differ |= c->entry[b].sq != c->entry[0].sq || c->entry[b].sk != c->entry[0].sk;
  m->map_batch = sequences_differ ? c->p->batch : 1;
  m->map_heads = fa_expr_uses(&m->mask, FA_EXPR_H) ? c->heads_q : 1;
}

static fa_status build_map(const fa_ref_call *c, fa_error *err) {
  fa_ref_mods *m = c->mods;
  fa_ref_mod_scratch *scratch = NULL;
  map_sizes(c, m);
  const int64_t per_head = m->n_q * m->n_kv;
  int64_t *counts = malloc((size_t)(2 * m->n_kv + 1) * sizeof *counts);
  fa_status status = fa_ref_mod_scratch_init(&scratch, c, false, err);
  m->map = malloc((size_t)(m->map_batch * m->map_heads * per_head) + 1);
  if (status == FA_OK && (!m->map || !counts))
    status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  for (int64_t b = 0; b < m->map_batch && b < c->p->batch && status == FA_OK; ++b)
    for (int64_t h = 0; h < m->map_heads; ++h)
      map_head(c, scratch, &c->entry[b], h, m->map + (b * m->map_heads + h) * per_head, counts);
  fa_ref_mod_scratch_free(scratch);
  free(counts);
  return status;
}

/* ---- a call's expressions ---- */

fa_status fa_ref_mods_init(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  if (!p->score_mod && !p->mask_mod) return FA_OK;
  fa_ref_mods *m = calloc(1, sizeof *m);
  if (!m) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  c->mods = m;
  pthread_mutex_init(&m->lock, NULL);
  fa_status status = fa_expr_of(p, FA_EXPR_SCORE_MOD, &m->score, err);
  if (status == FA_OK) status = fa_expr_of(p, FA_EXPR_MASK_MOD, &m->mask, err);
  for (int k = 0; k < p->n_captures && status == FA_OK; ++k)
    if (!c->in->t[FA_T_BUFFER_0 + k].data)
      status = fa_fail(err, FA_ERR_INPUT, "buffer %s: there is no tensor of it", p->captures[k].name);
  if (status == FA_OK && p->block_sparse.present && p->block_sparse.source == FA_BLOCKS_MASK_MOD)
    status = build_map(c, err);
  return status;
}

void fa_ref_mods_free(fa_ref_call *c) {
  if (!c->mods) return;
  fa_expr_free(&c->mods->score);
  fa_expr_free(&c->mods->mask);
  free(c->mods->map);
  pthread_mutex_destroy(&c->mods->lock);
  free(c->mods);
  c->mods = NULL;
}

static fa_status lists_of(const fa_ref_call *c, fa_int32_array out[4], fa_error *err) {
  const fa_ref_mods *m = c->mods;
  const int64_t rows = c->p->batch * c->heads_q * m->n_q;
  for (int list = 0; list < 4; ++list)
    if (fa_int32_array_set(&out[list], NULL, list & 1 ? rows * m->n_kv : rows) != FA_OK)
      return fa_fail(err, FA_ERR_MEMORY, "block lists: out of memory");
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t b = row / m->n_q / c->heads_q, h = row / m->n_q % c->heads_q, q = row % m->n_q;
    const int64_t map = (m->map_batch > 1 ? b : 0) * m->map_heads + (m->map_heads > 1 ? h : 0);
    for (int64_t k = 0; k < m->n_kv; ++k) {
      const uint8_t tile = m->map[(map * m->n_q + q) * m->n_kv + k];
      const int list = tile == FA_TILE_FULL ? 2 : 0;
      if (tile != FA_TILE_UNLISTED) out[list + 1].v[row * m->n_kv + out[list].v[row]++] = (int32_t)k;
    }
  }
  return FA_OK;
}

fa_status fa_ref_block_lists(const fa_problem *p, const fa_tensors *in, fa_int32_array out[4],
                             fa_error *err) {
  fa_ref_call c;
  fa_wants none;
  const fa_ref_options options = {.n_threads = 1};
  FA_ASSERT(p->block_sparse.present && p->block_sparse.source == FA_BLOCKS_MASK_MOD);
  memset(out, 0, 4 * sizeof *out);
  fa_status status = fa_ref_call_init(&c, p, in, &options, &none, err);
  if (status == FA_OK) status = fa_ref_mods_init(&c, err);
  if (status == FA_OK) status = fa_ref_mods_status(&c, err);
  if (status == FA_OK) status = lists_of(&c, out, err);
  fa_ref_mods_free(&c);
  fa_ref_call_free(&c);
  for (int list = 0; list < 4 && status != FA_OK; ++list) {
    free(out[list].v);
    out[list] = (fa_int32_array){0};
  }
  return status;
}
