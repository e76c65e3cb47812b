/* The tensors of a KV-cache call, and block-sparse lists. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/tensors/mixed.h"

#include <math.h>
#include <stdlib.h>

#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* Values of unused integer entries: far out of range, of both signs. */
static int32_t garbage(int64_t i) {
  return i & 1 ? -1 : INT32_MAX;
}

/* ---- caches ---- */

static fa_status add_cache(const fa_case *c, fa_tensors *set, fa_tensor_id id, int64_t d, fa_error *err) {
  const fa_problem *p = &c->problem;
  int64_t shape[4], stride[4];
  fa_case_cache_shape(p, d, shape);
  fa_layout_strides(c->layout, &c->strides[id], 4, shape, shape[2], stride);
  return fa_tensors_add_padded(set, id, fa_tensor_dtype(p, id), 4, shape, stride, c->strides[id].offset,
                               c->strides[id].tail, err);
}

/* V as the first columns of the K that is there. */
static fa_status add_in_k(const fa_case *c, fa_tensors *set, fa_tensor_id id, fa_tensor_id k, fa_error *err) {
  const fa_tensor *t = &set->t[k];
  const int64_t shape[4] = {t->shape[0], t->shape[1], t->shape[2], c->problem.head_dim_v};
  return fa_tensors_add_view(set, id, k, 4, shape, t->stride, 0, err);
}

static fa_status add_new(const fa_case *c, fa_tensors *set, fa_tensor_id id, int64_t d, fa_error *err) {
  const fa_problem *p = &c->problem;
  const int64_t shape[4] = {p->batch, p->kvcache.n_new, p->heads_kv, d};
  int64_t stride[4];
  fa_layout_strides(c->layout, &c->strides[id], 4, shape, shape[2], stride);
  return fa_tensors_add_padded(set, id, fa_tensor_dtype(p, id), 4, shape, stride, c->strides[id].offset,
                               c->strides[id].tail, err);
}

/* Page m of sequence b is page perm[b * max_pages + m]: shuffled, so that a kernel cannot assume an identity
 * table. Entries past the pages in use hold garbage. A shared page is the page of the first sequence that
 * fills it; the pages that the other sequences would have had are unowned. */
static fa_status build_block_table(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  const int64_t page = p->kvcache.page_size, max_pages = p->seqlen_k / page;
  const int64_t shape[2] = {p->batch, max_pages}, n = p->batch * max_pages + FA_SPARE_PAGES;
  int32_t *perm = malloc((size_t)n * sizeof *perm);
  if (!perm) return fa_fail(err, FA_ERR_MEMORY, "block_table: out of memory");
  fa_rng rng = fa_rng_make(fa_fill_seed(c->data_seed, FA_T_BLOCK_TABLE), 0);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = fa_rng_below(&rng, i + 1);
    if (j != i) perm[i] = perm[j];
    perm[j] = (int32_t)i;
  }
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t m = 0; m < p->kvcache.shared_pages; ++m)
      perm[b * max_pages + m] = perm[fa_problem_page_owner(p, b, m) * max_pages + m];
  for (int64_t b = 0; b < p->batch; ++b)
    for (int64_t m = (p->kvcache.len.v[b] + p->kvcache.n_new + page - 1) / page; m < max_pages; ++m)
      perm[b * max_pages + m] = garbage(m);
  const fa_status status = fa_build_int32(set, FA_T_BLOCK_TABLE, 2, shape, perm, err);
  free(perm);
  return status;
}

/* Angles pos * 10000^(-2t/r), with a row for every position that a query or a new key can have. */
static fa_status build_rotary(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  int64_t n_positions = 1;
  for (int64_t b = 0; b < p->batch; ++b) {
    const int64_t rows = p->kvcache.n_new > p->seqlen_q ? p->kvcache.n_new : p->seqlen_q;
    if (p->kvcache.len.v[b] + rows > n_positions) n_positions = p->kvcache.len.v[b] + rows;
  }
  const int64_t shape[2] = {n_positions, p->kvcache.rotary_dim / 2};
  TRY(fa_tensors_add(set, FA_T_ROTARY_COS, p->dtype, 2, shape, NULL, 0, err));
  TRY(fa_tensors_add(set, FA_T_ROTARY_SIN, p->dtype, 2, shape, NULL, 0, err));
  for (int64_t t = 0; t < shape[1]; ++t) {
    const double frequency = pow(10000, -2.0 * (double)t / (double)p->kvcache.rotary_dim);
    for (int64_t pos = 0; pos < n_positions; ++pos) {
      const int64_t at[2] = {pos, t};
      fa_tensor_set(&set->t[FA_T_ROTARY_COS], at, cos((double)pos * frequency));
      fa_tensor_set(&set->t[FA_T_ROTARY_SIN], at, sin((double)pos * frequency));
    }
  }
  return FA_OK;
}

fa_status fa_build_cache(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  if (p->family != FA_KVCACHE) return FA_OK;
  int64_t k[4], v[4];
  fa_tensor_shape(p, FA_T_K, k);
  fa_tensor_shape(p, FA_T_V, v);
  TRY(add_cache(c, set, FA_T_K, k[3], err));
  const bool latent = p->kvcache.v_in_k;
  TRY(latent ? add_in_k(c, set, FA_T_V, FA_T_K, err) : add_cache(c, set, FA_T_V, v[3], err));
  if (p->kvcache.n_new > 0) {
    TRY(add_new(c, set, FA_T_K_NEW, p->head_dim, err));
    TRY(latent ? add_in_k(c, set, FA_T_V_NEW, FA_T_K_NEW, err)
               : add_new(c, set, FA_T_V_NEW, p->head_dim_v, err));
  }
  if (p->kvcache.page_size > 0) TRY(build_block_table(c, set, err));
  return p->kvcache.rotary_dim > 0 ? build_rotary(c, set, err) : FA_OK;
}

/* ---- block-sparse lists ---- */

/* The case's lists; entries past each row's count are overwritten with garbage. */
static fa_status add_lists(const fa_block_sparse *s, fa_tensors *set, bool full, const fa_int32_array *counts,
                           const fa_int32_array *indices, int64_t n_q, int64_t n_kv, fa_error *err) {
  const int64_t shape[4] = {s->list_batch, s->list_heads, n_q, n_kv};
  const fa_tensor_id id = full ? FA_T_FULL_KV_INDICES : FA_T_KV_INDICES;
  TRY(fa_build_int32(set, full ? FA_T_FULL_KV_NUM_BLOCKS : FA_T_KV_NUM_BLOCKS, 3, shape, counts->v, err));
  TRY(fa_build_int32(set, id, 4, shape, indices->v, err));
  int32_t *v = (int32_t *)(void *)set->t[id].data;
  for (int64_t row = 0; row < counts->n && n_kv > 0; ++row)
    for (int64_t i = counts->v[row]; i < n_kv; ++i) v[row * n_kv + i] = garbage(i);
  return FA_OK;
}

/* Each tile is listed with probability `density`; a coin decides between full and partial. */
static fa_status draw_lists(const fa_block_sparse *s, fa_tensors *set, int64_t n_q, int64_t n_kv,
                            fa_error *err) {
  const int64_t n_rows = s->list_batch * s->list_heads * n_q;
  fa_int32_array counts[2] = {{0}}, indices[2] = {{0}}; /* partial, full */
  fa_status status = FA_OK;
  for (int f = 0; f < 2 && status == FA_OK; ++f) {
    status = fa_int32_array_set(&counts[f], NULL, n_rows);
    if (status == FA_OK) status = fa_int32_array_set(&indices[f], NULL, n_rows * n_kv);
  }
  if (status != FA_OK) fa_fail(err, status, "block_sparse: out of memory");
  for (int64_t row = 0; row < n_rows && status == FA_OK; ++row)
    for (int64_t tile = 0; tile < n_kv; ++tile) {
      /* Keyed by the position [b, h, q, kv], so that a shrunk case keeps its remaining tiles. */
      const uint64_t stream =
          (uint64_t)(row / n_q / s->list_heads) << 32 | (uint64_t)(row / n_q % s->list_heads);
      const uint64_t at = (uint64_t)(row % n_q) << 32 | (uint64_t)tile << 1;
      if (fa_rng_uniform(s->seed, stream, at) >= s->density) continue;
      const int f = fa_rng_uniform(s->seed, stream, at | 1) < 0.5;
      indices[f].v[row * n_kv + counts[f].v[row]++] = (int32_t)tile;
    }
  for (int f = 0; f < 2; ++f) {
    if (status == FA_OK) status = add_lists(s, set, f == 1, &counts[f], &indices[f], n_q, n_kv, err);
    free(counts[f].v);
    free(indices[f].v);
  }
  return status;
}

fa_status fa_build_blocks(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_block_sparse *s = &c->problem.block_sparse;
  if (!s->present || s->source == FA_BLOCKS_MASK_MOD) return FA_OK; /* mask_mod makes its own lists */
  const int64_t n_q = (c->problem.seqlen_q + s->q_block - 1) / s->q_block;
  const int64_t n_kv = (c->problem.seqlen_k + s->kv_block - 1) / s->kv_block;
  if (s->source == FA_BLOCKS_DENSITY) return draw_lists(s, set, n_q, n_kv, err);
  TRY(add_lists(s, set, false, &s->kv_num_blocks, &s->kv_indices, n_q, n_kv, err));
  if (s->full_kv_num_blocks.n == 0) return FA_OK;
  return add_lists(s, set, true, &s->full_kv_num_blocks, &s->full_kv_indices, n_q, n_kv, err);
}
