/* Which keys are visible to a row. */
#include "ref/mods/tile.h"

void fa_ref_visible_range(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i, int64_t *lo, int64_t *hi) {
  const fa_mask *m = &c->p->mask;
  int64_t first = 0, end = e->sk, diagonal = i + e->shift;
  if (m->type == FA_MASK_CAUSAL && end > diagonal + 1) end = diagonal + 1;
  if (m->type == FA_MASK_WINDOW) {
    if (m->left >= 0 && first < diagonal - m->left) first = diagonal - m->left;
    if (m->right >= 0 && end > diagonal + m->right + 1) end = diagonal + m->right + 1;
  }
  if (first >= end) first = end = 0;
  *lo = first;
  *hi = end;
}

/* The lists usually are tensors (built or recorded); lists in the problem itself are read directly. */
static int64_t list_at(const fa_ref_call *c, fa_tensor_id id, const fa_int32_array *own, int64_t b, int64_t h,
                       int64_t qb, int64_t k, int64_t n_qb, int64_t width) {
  const fa_block_sparse *s = &c->p->block_sparse;
  if (s->list_batch <= 1) b = 0;
  if (s->list_heads <= 1) h = 0;
  const fa_tensor *t = &c->in->t[id];
  if (t->data) {
    int64_t index[FA_MAX_RANK] = {t->shape[0] == 1 ? 0 : b, t->shape[1] == 1 ? 0 : h, qb, k};
    return (int64_t)fa_tensor_get(t, index);
  }
  if (own->n == 0) return 0;
  int64_t heads = s->list_heads > 1 ? s->list_heads : 1;
  return own->v[((b * heads + h) * n_qb + qb) * width + k];
}

static bool in_list(const fa_ref_call *c, fa_tensor_id counts, fa_tensor_id indices,
                    const fa_int32_array *own_n, const fa_int32_array *own_v, int64_t b, int64_t h,
                    int64_t qb, int64_t kb) {
  const fa_problem *p = c->p;
  int64_t n_qb = (p->seqlen_q + p->block_sparse.q_block - 1) / p->block_sparse.q_block;
  int64_t n_kb = (p->seqlen_k + p->block_sparse.kv_block - 1) / p->block_sparse.kv_block;
  if (!c->in->t[counts].data && own_n->n == 0) return false;
  int64_t n = list_at(c, counts, own_n, b, h, qb, 0, n_qb, 1);
  for (int64_t k = 0; k < n; ++k)
    if (list_at(c, indices, own_v, b, h, qb, k, n_qb, n_kb) == kb) return true;
  return false;
}

/* Kind of a tile in the map made from mask_mod. */
static int mapped_kind(const fa_ref_mods *m, int64_t b, int64_t h, int64_t qb, int64_t kb) {
  const int64_t head = (m->map_batch > 1 ? b : 0) * m->map_heads + (m->map_heads > 1 ? h : 0);
  return m->map[(head * m->n_q + qb) * m->n_kv + kb];
}

int fa_ref_block_kind(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j) {
  const fa_block_sparse *s = &c->p->block_sparse;
  int64_t qb = i / s->q_block, kb = j / s->kv_block;
  if (s->source == FA_BLOCKS_MASK_MOD) return mapped_kind(c->mods, e->b, h, qb, kb);
  if (in_list(c, FA_T_KV_NUM_BLOCKS, FA_T_KV_INDICES, &s->kv_num_blocks, &s->kv_indices, e->b, h, qb, kb))
    return FA_TILE_PARTIAL;
  bool full = in_list(c, FA_T_FULL_KV_NUM_BLOCKS, FA_T_FULL_KV_INDICES, &s->full_kv_num_blocks,
                      &s->full_kv_indices, e->b, h, qb, kb);
  return full ? FA_TILE_FULL : FA_TILE_UNLISTED;
}

bool fa_ref_block_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j) {
  return !c->p->block_sparse.present || fa_ref_block_kind(c, e, h, i, j) != FA_TILE_UNLISTED;
}

void fa_ref_rows_init(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i0, fa_ref_rows *r) {
  r->e = e;
  r->h = h;
  r->i0 = i0;
  r->n = e->sq - i0 < FA_BLOCK_M ? e->sq - i0 : FA_BLOCK_M;
  r->j_begin = e->sk;
  r->j_end = 0;
  for (int64_t k = 0; k < r->n; ++k) {
    fa_ref_visible_range(c, e, i0 + k, &r->lo[k], &r->hi[k]);
    if (r->lo[k] == r->hi[k]) continue;
    if (r->lo[k] < r->j_begin) r->j_begin = r->lo[k];
    if (r->hi[k] > r->j_end) r->j_end = r->hi[k];
  }
  if (r->j_begin > r->j_end) r->j_begin = r->j_end = 0;
}

bool fa_ref_tile_visited(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n) {
  const fa_block_sparse *s = &c->p->block_sparse;
  if (!s->present) return true;
  for (int64_t i = r->i0; i < r->i0 + r->n; i = (i / s->q_block + 1) * s->q_block)
    for (int64_t j = j0; j < j0 + n; j = (j / s->kv_block + 1) * s->kv_block)
      if (fa_ref_block_listed(c, r->e, r->h, i, j)) return true;
  return false;
}

void fa_ref_row_span(const fa_ref_rows *r, int64_t k, int64_t j0, int64_t n, int64_t *begin, int64_t *end) {
  int64_t lo = r->lo[k] - j0, hi = r->hi[k] - j0;
  if (lo < 0) lo = 0;
  if (hi > n) hi = n;
  if (lo >= hi) lo = hi = 0;
  *begin = lo;
  *end = hi;
}

/* For each key: the rows from the first whose range ends after it to the last whose range begins before it.
 * Rows in between that do not see the key hold zeros. */
void fa_ref_tile_spans_init(const fa_ref_rows *r, int64_t j0, int64_t n, fa_ref_tile_spans *out) {
  out->rows = (fa_gemm_spans){out->row_first, out->row_end};
  out->keys = (fa_gemm_spans){out->key_first, out->key_end};
  for (int64_t k = 0; k < r->n; ++k) fa_ref_row_span(r, k, j0, n, &out->row_first[k], &out->row_end[k]);
  int64_t j = 0;
  for (int64_t k = 0; k < r->n; ++k)
    for (; j < out->row_end[k]; ++j) out->key_first[j] = k;
  for (; j < n; ++j) out->key_first[j] = r->n;
  j = n;
  for (int64_t k = r->n - 1; k >= 0; --k)
    for (; out->row_first[k] < out->row_end[k] && j > out->row_first[k]; --j) out->key_end[j - 1] = k + 1;
  for (; j > 0; --j) out->key_end[j - 1] = 0;
}
