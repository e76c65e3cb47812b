/* The three matrix products of attention, of all blocks or heads of a wave at once, in float64 or in float32. A tile of
 * FA_STRIP x FA_STRIP sums is one item; every sum has one order, whatever runs beside it.
 *
 *   row_by_key   C[row][key] = alpha sum_x A[row][x] B[key][x]    panels: S, dP and their magnitudes
 *   row          C[row][x] = alpha sum_key P[row][key] B[key][x]  O, dQ
 *   key          C[key][x] += alpha sum_row P[row][key] B[row][x] dV, dK
 *
 * Panels are 0 where a mask hides the pair, and what no row of a tile sees is left out. */
#ifndef FA_REF_CUDA_PRODUCT_CUH
#define FA_REF_CUDA_PRODUCT_CUH

#include "ref/cuda/find.cuh"

/* One tile's operands along k: element (i, k) of A is at i a_i + k a_k, element (k, j) of B at k b_k + j b_j. */
template <typename T> struct fa_judge_operands {
  const T *a, *b;
  int64_t a_i, a_k, b_k, b_j;
  int first_i, m, n; /* of the tile: rows first_i .. m - 1 and columns 0 .. n - 1, at most FA_STRIP */
};

#ifdef __CUDACC__
#include "ref/cuda/product_device.cuh"
#else
/* One thread does a whole tile. */
template <typename T> struct fa_judge_sums { T sum[FA_STRIP][FA_STRIP]; };
template <typename T> FA_DEVICE void clear_sums(fa_judge_sums<T> *s) {
  for (int i = 0; i < FA_STRIP; ++i)
    for (int j = 0; j < FA_STRIP; ++j) s->sum[i][j] = 0;
}
template <typename T>
FA_DEVICE void add_products(fa_judge_sums<T> *s, const fa_judge_operands<T> *o, int64_t first, int64_t end) {
  for (int i = o->first_i; i < o->m; ++i)
    for (int64_t k = first; k < end; ++k) {
      const T a = o->a[i * o->a_i + k * o->a_k];
      for (int j = 0; j < o->n; ++j) s->sum[i][j] += a * o->b[k * o->b_k + j * o->b_j];
    }
}
template <typename T>
FA_DEVICE void store_sums(const fa_judge_sums<T> *s, int m, int n, T alpha, bool add, T *c, int64_t ldc) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) c[i * ldc + j] = alpha * s->sum[i][j] + (add ? c[i * ldc + j] : 0);
}
/* The smallest first and largest end of n ranges; none: first >= end. */
template <typename F> FA_DEVICE void join_ranges(int64_t n, const F &range, int64_t *first, int64_t *end) {
  *first = INT64_MAX, *end = 0;
  for (int64_t r = 0; r < n; ++r) {
    int64_t lo, hi;
    range(r, &lo, &hi);
    if (lo >= hi) continue;
    *first = lo < *first ? lo : *first;
    *end = hi > *end ? hi : *end;
  }
}
#endif

FA_DEVICE int at_most_strip(int64_t n) {
  return n < FA_STRIP ? (int)n : (int)FA_STRIP;
}
FA_DEVICE int64_t strips_of(int64_t n) {
  return (n + FA_STRIP - 1) / FA_STRIP;
}

/* The keys that rows r0 .. r0 + m - 1 of a block see, from its first key on. */
FA_DEVICE void keys_of_rows(const fa_judge_job *x, const fa_judge_block *b, int64_t r0, int64_t m,
                            int64_t *first, int64_t *end) {
  join_ranges(
      m,
      [=](int64_t r, int64_t *lo, int64_t *hi) {
        const fa_judge_place p = place_of_row(x, b, r0 + r);
        *lo = p.begin;
        *hi = p.end;
      },
      first, end);
}

/* The rows of a block that see any of keys j0 .. j0 + n - 1. */
FA_DEVICE void rows_of_keys(const fa_judge_job *x, const fa_judge_block *b, int64_t j0, int64_t n,
                            int64_t *first, int64_t *end) {
  join_ranges(
      b->n,
      [=](int64_t r, int64_t *lo, int64_t *hi) {
        const fa_judge_place p = place_of_row(x, b, r);
        const bool sees = p.begin + b->j_begin < j0 + n && p.end + b->j_begin > j0 && p.begin < p.end;
        *lo = sees ? r : 0;
        *hi = sees ? r + 1 : 0;
      },
      first, end);
}

template <typename T> FA_DEVICE void product_row_by_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_product *p = &x->product;
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_tile, at);
  const int64_t width = b->j_end - b->j_begin, columns = strips_of(width), tile = at - b->first_tile;
  const int64_t i0 = tile / columns * FA_STRIP, j0 = tile % columns * FA_STRIP;
  int64_t first, end;
  keys_of_rows(x, b, i0, at_most_strip(b->n - i0), &first, &end);
  if (first >= j0 + FA_STRIP || end <= j0) return; /* nobody reads it */
  const int64_t key = x->head[b->head].key + b->j_begin + j0;
  const fa_judge_operands<T> o = {(const T *)p->a + (b->first_row + i0) * p->width,
                                  (const T *)p->b + key * p->width,
                                  p->width,
                                  1,
                                  1,
                                  p->width,
                                  0,
                                  at_most_strip(b->n - i0),
                                  at_most_strip(width - j0)};
  fa_judge_sums<T> s;
  clear_sums(&s);
  add_products(&s, &o, 0, p->width);
  store_sums(&s, o.m, o.n, (T)p->alpha, false, (T *)p->c + b->first_pair + i0 * width + j0, width);
}

template <typename T> FA_DEVICE void product_row(const fa_judge_job *x, int64_t at) {
  const fa_judge_product *p = &x->product;
  const int64_t columns = strips_of(p->width), strip = at / columns, x0 = at % columns * FA_STRIP;
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_strip, strip);
  const int64_t width = b->j_end - b->j_begin, i0 = (strip - b->first_strip) * FA_STRIP;
  int64_t first, end;
  keys_of_rows(x, b, i0, at_most_strip(b->n - i0), &first, &end);
  const fa_judge_operands<T> o = {(const T *)p->a + b->first_pair + i0 * width,
                                  (const T *)p->b + (x->head[b->head].key + b->j_begin) * p->width + x0,
                                  width,
                                  1,
                                  p->width,
                                  1,
                                  0,
                                  at_most_strip(b->n - i0),
                                  at_most_strip(p->width - x0)};
  fa_judge_sums<T> s;
  clear_sums(&s);
  if (first < end) add_products(&s, &o, first, end);
  store_sums(&s, o.m, o.n, (T)p->alpha, false, (T *)p->c + (b->first_row + i0) * p->width + x0, p->width);
}

template <typename T> FA_DEVICE void product_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_product *p = &x->product;
  const int64_t columns = strips_of(p->width), strip = at / columns, x0 = at % columns * FA_STRIP;
  const fa_judge_head *head =
      last_before((const fa_judge_head *)x->head, x->n_heads, &fa_judge_head::key_strip, strip);
  const int64_t j0 = (strip - head->key_strip) * FA_STRIP;
  const int m = at_most_strip(head->sk - j0), n = at_most_strip(p->width - x0);
  fa_judge_sums<T> s;
  clear_sums(&s);
  int64_t block, end_block;
  blocks_of_head(x, head, &block, &end_block);
  for (; block < end_block; ++block) {
    const fa_judge_block *b = x->block + block;
    /* Of a strip that begins before the block's first key, or ends behind its last, only a part has pairs. */
    const int64_t begin = j0 > b->j_begin ? j0 : b->j_begin, stop = j0 + m < b->j_end ? j0 + m : b->j_end;
    int64_t first, end;
    if (begin >= stop) continue;
    rows_of_keys(x, b, j0, m, &first, &end);
    if (first >= end) continue;
    const int64_t width = b->j_end - b->j_begin;
    const fa_judge_operands<T> o = {(const T *)p->a + b->first_pair + j0 - b->j_begin,
                                    (const T *)p->b + b->first_row * p->width + x0,
                                    1,
                                    width,
                                    p->width,
                                    1,
                                    (int)(begin - j0),
                                    (int)(stop - j0),
                                    n};
    add_products(&s, &o, first, end);
  }
  store_sums(&s, m, n, (T)p->alpha, true, (T *)p->c + (head->key + j0) * p->width + x0, p->width);
}

FA_DEVICE void fa_judge_row_by_key_f64(const fa_judge_job *x, int64_t at) {
  product_row_by_key<double>(x, at);
}
FA_DEVICE void fa_judge_row_by_key_f32(const fa_judge_job *x, int64_t at) {
  product_row_by_key<float>(x, at);
}
FA_DEVICE void fa_judge_row_f64(const fa_judge_job *x, int64_t at) {
  product_row<double>(x, at);
}
FA_DEVICE void fa_judge_row_f32(const fa_judge_job *x, int64_t at) {
  product_row<float>(x, at);
}
FA_DEVICE void fa_judge_key_f64(const fa_judge_job *x, int64_t at) {
  product_key<double>(x, at);
}
FA_DEVICE void fa_judge_key_f32(const fa_judge_job *x, int64_t at) {
  product_key<float>(x, at);
}

#endif
