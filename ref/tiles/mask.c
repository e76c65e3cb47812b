/* Which keys are visible to a row. */
#include "ref/tiles/mask.h"

#include "ref/engine/geometry.h"
#include "ref/mods/tile.h"

void fa_ref_visible_range(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i, int64_t *lo,
                          int64_t *hi) {
  int64_t first, end;
  fa_ref_mask_range(&c->p->mask, e->sk, e->shift, i, &first, &end);
  if (c->twist && c->twist->range) c->twist->range(c->twist, c, e, i, &first, &end);
  if (first >= end) first = end = 0;
  *lo = first;
  *hi = end;
}

void fa_ref_rows_init(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i0, fa_ref_rows *r) {
  r->e = e;
  r->h = h;
  r->i0 = i0;
  r->n = e->sq - i0 < FA_BLOCK_M ? e->sq - i0 : FA_BLOCK_M;
  r->j_begin = e->sk;
  r->j_end = 0;
  for (int64_t k = 0; k < r->n; ++k) {
    r->row[k] = i0 + k;
    r->left_out[k] = false;
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
  for (int64_t k = 0, last = -1; k < r->n; ++k) {
    if (r->row[k] / s->q_block == last) continue;
    last = r->row[k] / s->q_block;
    for (int64_t j = j0; j < j0 + n; j = (j / s->kv_block + 1) * s->kv_block)
      if (fa_ref_block_listed(c, r->e, r->h, r->row[k], j)) return true;
  }
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
