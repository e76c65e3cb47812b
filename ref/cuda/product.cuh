/* The three matrix products of attention, of all blocks or heads of a wave at once, in float64 or in float32. A tile of
 * sums is one item, FA_STRIP x FA_STRIP, or larger ones where there are enough of them to fill a device; every sum has one
 * order, whatever runs beside it.
 *
 *   row_by_key   C[row][key] = alpha sum_x A[row][x] B[key][x]    panels: S, dP and their magnitudes
 *   row          C[row][x] = alpha sum_key P[row][key] B[key][x]  O, dQ
 *   key          C[key][x] += alpha sum_row P[row][key] B[row][x] dV, dK
 *
 * Panels are 0 where a mask hides the pair, and what no row of a tile sees is left out. The sums of `row` are along all keys of
 * a row, and those of long ones in parts, which `join` adds up in their order. */
#ifndef FA_REF_CUDA_PRODUCT_CUH
#define FA_REF_CUDA_PRODUCT_CUH

#include "ref/cuda/find.cuh"

/* One tile's operands along k: element (i, k) of A is at i a_i + k a_k, element (k, j) of B at k b_k + j b_j. */
template <typename T> struct fa_judge_operands {
  const T *a, *b;
  int64_t a_i, a_k, b_k, b_j;
  int first_i, m, n; /* of the tile: rows first_i .. m - 1 and columns 0 .. n - 1 */
};

/* Rows and columns of a tile. */
template <typename T, bool WIDE> struct fa_judge_tile {
  enum {
    M = WIDE ? (int)FA_WIDE_M : (int)FA_STRIP,
    N = !WIDE            ? (int)FA_STRIP
        : sizeof(T) == 8 ? (int)FA_WIDE_N_64
                         : (int)FA_WIDE_N_32
  };
};

#ifdef __CUDACC__
#include "ref/cuda/product_device.cuh"
#else
/* One thread does a whole tile. */
template <typename T, int M, int N> struct fa_judge_sums { T sum[M][N]; };
template <typename T, int M, int N> FA_DEVICE void clear_sums(fa_judge_sums<T, M, N> *s) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) s->sum[i][j] = 0;
}
template <bool A_K, bool B_K, typename T, int M, int N>
FA_DEVICE void add_products(fa_judge_sums<T, M, N> *s, const fa_judge_operands<T> *o, int64_t first,
                            int64_t end) {
  for (int i = o->first_i; i < o->m; ++i)
    for (int64_t k = first; k < end; ++k) {
      const T a = o->a[i * o->a_i + k * o->a_k];
      for (int j = 0; j < o->n; ++j) s->sum[i][j] += a * o->b[k * o->b_k + j * o->b_j];
    }
}
template <typename T, int M, int N>
FA_DEVICE void store_sums(const fa_judge_sums<T, M, N> *s, int m, int n, T alpha, bool add, T *c,
                          int64_t ldc) {
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

FA_DEVICE int at_most(int most, int64_t n) {
  return n < most ? (int)n : most;
}
FA_DEVICE int64_t parts_of(int64_t n, int64_t by) {
  return (n + by - 1) / by;
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

/* ---- which tile an item is ---- */

/* A tile of a block's rows: from row i0 and column `column` of `columns`. Items of wide tiles are as many for every block, and
 * some of them of none: i0 >= b->n. */
typedef struct fa_judge_rows_tile {
  const fa_judge_block *b;
  int64_t i0, column;
} fa_judge_rows_tile;

template <bool WIDE> FA_DEVICE fa_judge_rows_tile tile_of_panel(const fa_judge_job *x, int64_t at) {
  const int64_t columns = x->product.columns;
  if (WIDE) {
    const int64_t each = FA_BLOCK_M / FA_WIDE_M * columns, tile = at % each;
    return (fa_judge_rows_tile){x->block + at / each, tile / columns * FA_WIDE_M, tile % columns};
  }
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_tile, at);
  const int64_t tile = at - b->first_tile, across = parts_of(b->j_end - b->j_begin, FA_STRIP);
  return (fa_judge_rows_tile){b, tile / across * FA_STRIP, tile % across};
}

template <bool WIDE> FA_DEVICE fa_judge_rows_tile tile_of_rows(const fa_judge_job *x, int64_t at) {
  const int64_t columns = x->product.columns, strip = at / columns;
  if (WIDE) {
    const int64_t each = FA_BLOCK_M / FA_WIDE_M;
    return (fa_judge_rows_tile){x->block + strip / each, strip % each * FA_WIDE_M, at % columns};
  }
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_strip, strip);
  return (fa_judge_rows_tile){b, (strip - b->first_strip) * FA_STRIP, at % columns};
}

/* The head of a tile of keys, and its first. Wide ones are of the wave's heads alone. */
template <bool WIDE>
FA_DEVICE const fa_judge_head *tile_of_keys(const fa_judge_job *x, int64_t at, int64_t *j0, int64_t *column) {
  const int64_t strip = at / x->product.columns;
  *column = at % x->product.columns;
  if (WIDE) {
    *j0 = strip % x->product.strips * FA_WIDE_M;
    return x->head + x->block->head + strip / x->product.strips;
  }
  const fa_judge_head *head =
      last_before((const fa_judge_head *)x->head, x->n_heads, &fa_judge_head::key_strip, strip);
  *j0 = (strip - head->key_strip) * FA_STRIP;
  return head;
}

/* ---- the products ---- */

template <typename T, bool WIDE> FA_DEVICE void product_row_by_key(const fa_judge_job *x, int64_t at) {
  enum { M = fa_judge_tile<T, WIDE>::M, N = fa_judge_tile<T, WIDE>::N };
  const fa_judge_product *p = &x->product;
  const fa_judge_rows_tile tile = tile_of_panel<WIDE>(x, at);
  const fa_judge_block *b = tile.b;
  const int64_t width = b->j_end - b->j_begin, i0 = tile.i0, j0 = tile.column * N;
  int64_t first, end;
  if (i0 >= b->n || j0 >= width) return;
  keys_of_rows(x, b, i0, at_most(M, b->n - i0), &first, &end);
  if (first >= j0 + N || end <= j0) return; /* nobody reads it */
  const int64_t key = x->head[b->head].key + b->j_begin + j0;
  const fa_judge_operands<T> o = {(const T *)p->a + (b->first_row + i0) * p->width,
                                  (const T *)p->b + key * p->width,
                                  p->width,
                                  1,
                                  1,
                                  p->width,
                                  0,
                                  at_most(M, b->n - i0),
                                  at_most(N, width - j0)};
  fa_judge_sums<T, M, N> s;
  clear_sums(&s);
  add_products<true, true>(&s, &o, 0, p->width);
  store_sums(&s, o.m, o.n, (T)p->alpha, false, (T *)p->c + b->first_pair + i0 * width + j0, width);
}

/* Items: all tiles of the first part of the keys, then all of the second. */
template <typename T, bool WIDE> FA_DEVICE void product_row(const fa_judge_job *x, int64_t at) {
  enum { M = fa_judge_tile<T, WIDE>::M, N = fa_judge_tile<T, WIDE>::N };
  const fa_judge_product *p = &x->product;
  const int64_t tiles = x->n / p->parts, part = at / tiles;
  const fa_judge_rows_tile tile = tile_of_rows<WIDE>(x, at % tiles);
  const fa_judge_block *b = tile.b;
  const int64_t width = b->j_end - b->j_begin, i0 = tile.i0, x0 = tile.column * N;
  int64_t first, end;
  if (i0 >= b->n) return;
  keys_of_rows(x, b, i0, at_most(M, b->n - i0), &first, &end);
  if (p->parts > 1) {
    first = first > part * FA_PART ? first : part * FA_PART;
    end = end < (part + 1) * FA_PART ? end : (part + 1) * FA_PART;
  }
  const fa_judge_operands<T> o = {(const T *)p->a + b->first_pair + i0 * width,
                                  (const T *)p->b + (x->head[b->head].key + b->j_begin) * p->width + x0,
                                  width,
                                  1,
                                  p->width,
                                  1,
                                  0,
                                  at_most(M, b->n - i0),
                                  at_most(N, p->width - x0)};
  fa_judge_sums<T, M, N> s;
  clear_sums(&s);
  if (first < end) add_products<true, false>(&s, &o, first, end);
  T *to = p->parts > 1 ? (T *)x->part + part * p->rows * p->width : (T *)p->c;
  store_sums(&s, o.m, o.n, (T)p->alpha, false, to + (b->first_row + i0) * p->width + x0, p->width);
}

/* An element kernel: the parts of a sum. */
template <typename T> FA_DEVICE void join_parts(const fa_judge_job *x, int64_t at) {
  const fa_judge_product *p = &x->product;
  T sum = 0;
  for (int64_t part = 0; part < p->parts; ++part) sum += ((const T *)x->part)[part * x->n + at];
  ((T *)p->c)[at] = sum;
}

template <typename T, bool WIDE> FA_DEVICE void product_key(const fa_judge_job *x, int64_t at) {
  enum { M = fa_judge_tile<T, WIDE>::M, N = fa_judge_tile<T, WIDE>::N };
  const fa_judge_product *p = &x->product;
  int64_t j0, column, block, end_block;
  const fa_judge_head *head = tile_of_keys<WIDE>(x, at, &j0, &column);
  const int64_t x0 = column * N;
  if (j0 >= head->sk) return;
  const int m = at_most(M, head->sk - j0), n = at_most(N, p->width - x0);
  bool any = false;
  fa_judge_sums<T, M, N> s;
  clear_sums(&s);
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
    add_products<false, false>(&s, &o, first, end);
    any = true;
  }
  if (any) store_sums(&s, m, n, (T)p->alpha, true, (T *)p->c + (head->key + j0) * p->width + x0, p->width);
}

#define FA_JUDGE_PRODUCT(name, form, type, wide)                                                             \
  FA_DEVICE void fa_judge_##name(const fa_judge_job *x, int64_t at) {                                        \
    form<type, wide>(x, at);                                                                                 \
  }
FA_JUDGE_PRODUCT(row_by_key_f64, product_row_by_key, double, false)
FA_JUDGE_PRODUCT(row_by_key_f32, product_row_by_key, float, false)
FA_JUDGE_PRODUCT(row_f64, product_row, double, false)
FA_JUDGE_PRODUCT(row_f32, product_row, float, false)
FA_JUDGE_PRODUCT(key_f64, product_key, double, false)
FA_JUDGE_PRODUCT(key_f32, product_key, float, false)
FA_JUDGE_PRODUCT(wide_row_by_key_f64, product_row_by_key, double, true)
FA_JUDGE_PRODUCT(wide_row_by_key_f32, product_row_by_key, float, true)
FA_JUDGE_PRODUCT(wide_row_f64, product_row, double, true)
FA_JUDGE_PRODUCT(wide_row_f32, product_row, float, true)
FA_JUDGE_PRODUCT(wide_key_f64, product_key, double, true)
FA_JUDGE_PRODUCT(wide_key_f32, product_key, float, true)
FA_DEVICE void fa_judge_join_f64(const fa_judge_job *x, int64_t at) {
  join_parts<double>(x, at);
}
FA_DEVICE void fa_judge_join_f32(const fa_judge_job *x, int64_t at) {
  join_parts<float>(x, at);
}

#endif
