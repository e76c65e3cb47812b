/* The copies of the main backward kernels: loads of input tiles into shared memory, atomic additions of
 * gradients to accumulators, stores of gradients. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_COPY_CUH
#define FA_GPU_KERNELS_FLASH_BACKWARD_COPY_CUH

#include "gpu/kernels/flash/backward_config.cuh"

namespace fa {

/* Loads ROWS rows of one head from `row` on into the tile at offset `at` in shared memory. */
template <class C, int ROWS>
FA_DEVICE void fetch_tile(const fa_backward_params &p, const uint16_t *from,
                          const fa_kernel_strides &stride, int head_dim, int batch, int head, int64_t row,
                          int n_rows, int at, int thread) {
  typedef tile_copy<C::D, C::THREADS> copy;
  from += batch * stride.batch + head * stride.head + row * stride.row + copy::in_global(thread, stride.row);
  load_tile<ROWS, C>(shared_base() + at + copy::in_tile(thread), from, stride.row, n_rows, thread, head_dim,
                     rows_are_aligned_too<C>(p));
}

/* Starts copying Q, dO, LSE and delta of a query block into a buffer. */
template <class C>
FA_DEVICE void fetch_rows(const fa_backward_params &p, const sequence &seq, int batch, int head, int m,
                          int buffer, int thread) {
  const int row0 = m * C::BM, n_rows = seq.len_q - row0;
  const int64_t row = static_cast<int64_t>(seq.q_row) + row0;
  fetch_tile<C, C::BM>(p, p.forward.q, p.forward.q_stride, p.forward.head_dim, batch, head, row, n_rows,
                       C::q_at(buffer), thread);
  fetch_tile<C, C::BM>(p, p.d_o, p.do_stride, p.forward.head_dim_v, batch, head, row, n_rows,
                       C::q_at(buffer) + (C::DO_AT - C::Q_AT), thread);
  /* LSE and delta: the workspace is padded to whole tiles */
  if (thread < C::BM / 2) {
    const float *from = (thread < C::BM / 4 ? p.lse_log2 : p.delta) +
                        workspace_row<C::D>(p, batch, head, row0) + 4 * (thread % (C::BM / 4));
    cp_async16(shared_base() + C::rows_at(buffer) + thread * 16, from, true);
  }
  cp_async_commit();
}

/* The same for K and V; the caller commits. */
template <class C>
FA_DEVICE void fetch_keys(const fa_backward_params &p, const sequence &seq, int batch, int head,
                          int key0, int buffer, int thread) {
  const int n_rows = seq.len_k - key0;
  const int64_t row = static_cast<int64_t>(seq.k_row) + key0;
  fetch_tile<C, C::BN>(p, p.forward.k, p.forward.k_stride, p.forward.head_dim, batch, head, row, n_rows,
                       C::k_at(buffer), thread);
  fetch_tile<C, C::BN>(p, p.forward.v, p.forward.v_stride, p.forward.head_dim_v, batch, head, row, n_rows,
                       C::k_at(buffer) + (C::V_AT - C::K_AT), thread);
}

/* The first 8 columns of a warp's part of a gradient: groups of 16 columns are dealt to the warps
 * round-robin. */
template <int WARPS_DOWN> FA_DEVICE int first_chunk(int warp) {
  return 2 * (warp / WARPS_DOWN);
}

/* Adds a warp's part of a gradient to an accumulator; `accum` is at the warp's first row. */
template <int D, int WARPS_DOWN, int COL_WARPS, int TILES, int N8>
FA_DEVICE void add_gradient(float *accum, const float (&x)[TILES][N8][4], int warp, int lane) {
  accum += (first_chunk<WARPS_DOWN>(warp) * 32 + lane) * 4;
  FA_UNROLL
  for (int m = 0; m < TILES; ++m) {
    FA_UNROLL
    for (int n = 0; n < N8; ++n)
      atomic_add4(accum + (m * (D / 8) + n / 2 * 2 * COL_WARPS + n % 2) * 128, x[m][n]);
  }
}

/* The accumulator that this block adds to: the first one or, deterministic, its own. */
FA_DEVICE int64_t own_accumulator(const fa_backward_params &p) {
  return p.deterministic ? blockIdx.x * p.split_stride : 0;
}

template <class C>
FA_DEVICE void add_dq(const fa_backward_params &p, const typename C::dq_tile &dq, int batch, int head,
                      int row0, int warp, int lane) {
  const int row = row0 + 16 * C::S_TILES * (warp % C::S_WARPS);
  add_gradient<C::D, C::S_WARPS, C::S_COL_WARPS>(
      p.dq_accum + own_accumulator(p) + workspace_row<C::D>(p, batch, head, row) * C::D, dq, warp, lane);
}

/* dK or dV. */
template <class C>
FA_DEVICE void add_dkv(const fa_backward_params &p, float *accum, const typename C::dkv_tile &x,
                       int batch, int head, int key0, int warp, int lane) {
  const int key = key0 + 16 * C::KV_TILES * (warp % C::KV_WARPS);
  add_gradient<C::D, C::KV_WARPS, C::KV_COL_WARPS>(
      accum + own_accumulator(p) + workspace_key<C::D>(p, batch, head, key) * C::D, x, warp, lane);
}

/* Copies a warp's part of a gradient, times factor and rounded, to a tile in shared memory. */
template <class C, int WARPS_DOWN, int COL_WARPS, int TILES, int N8>
FA_DEVICE void stage_gradient(const float (&x)[TILES][N8][4], float factor, uint32_t tile, int warp,
                              int lane) {
  const int row = 16 * TILES * (warp % WARPS_DOWN) + lane / 4;
  const uint32_t first = tile + tile_offset<C::D>(row, first_chunk<WARPS_DOWN>(warp)) + lane % 4 * 4;
  FA_UNROLL
  for (int m = 0; m < TILES; ++m) {
    FA_UNROLL
    for (int r = 0; r < 2; ++r) {
      FA_UNROLL
      for (int n = 0; n < N8; ++n) /* the two chunks of a group, then the warp's next group */
        store_shared4(tile_right<C::D>(first, n / 2 * 2 * COL_WARPS + n % 2) + (16 * m + 8 * r) * (C::D * 2),
                      pack2(x[m][n][2 * r] * factor, x[m][n][2 * r + 1] * factor, typename C::T()));
    }
  }
}

template <class C>
FA_DEVICE void store_gradient_chunk(const fa_backward_params &p, uint16_t *to,
                                    const fa_kernel_strides &stride, int batch, int head, int64_t row,
                                    int chunk, vec4 v) {
  to += batch * stride.batch + head * stride.head + row * stride.row + chunk * 8;
  if (rows_are_aligned_too<C>(p))
    store_chunk<true>(to, v);
  else
    store_chunk<false>(to, v);
}

/* Stores rows [row0, row0 + n_rows), at most a tile of ROWS, of a gradient from a tile in shared memory. */
template <class C, int ROWS>
FA_DEVICE void write_gradient(const fa_backward_params &p, uint16_t *to, const fa_kernel_strides &stride,
                              int head_dim, uint32_t tile, int batch, int head, int64_t row0, int n_rows,
                              int thread) {
  constexpr int CHUNKS = C::D / 8;
  FA_NO_UNROLL
  for (int i = thread; i < min_int(n_rows, ROWS) * CHUNKS; i += C::THREADS) {
    const int row = i / CHUNKS, chunk = i % CHUNKS;
    if (chunk < head_dim / 8)
      store_gradient_chunk<C>(p, to, stride, batch, head, row0 + row, chunk,
                              load_shared16(tile + tile_offset<C::D>(row, chunk)));
  }
}

/* Writes zeros to n_rows rows of a gradient; to none if n_rows is negative. */
template <class C>
FA_DEVICE void clear_gradient(const fa_backward_params &p, uint16_t *to, const fa_kernel_strides &stride,
                              int head_dim, int batch, int head, int64_t begin, int n_rows, int thread) {
  constexpr int CHUNKS = C::D / 8;
  FA_NO_UNROLL
  for (int i = thread; i < n_rows * CHUNKS; i += C::THREADS)
    if (i % CHUNKS < head_dim / 8)
      store_gradient_chunk<C>(p, to, stride, batch, head, begin + i / CHUNKS, i % CHUNKS, vec4{0, 0, 0, 0});
}
template <class C>
FA_DEVICE void clear_keys(const fa_backward_params &p, int batch, int head, int64_t begin, int n_rows,
                          int thread) {
  clear_gradient<C>(p, p.dk, p.dk_stride, p.forward.head_dim, batch, head, begin, n_rows, thread);
  clear_gradient<C>(p, p.dv, p.dv_stride, p.forward.head_dim_v, batch, head, begin, n_rows, thread);
}

/* Writes zeros to rows of dK and dV that belong to the sequence but whose keys are masked: left padding, and
 * keys past seqused_k. Blocks share them in the same pieces as the other keys. */
template <class C>
FA_DEVICE void clear_masked_keys(const fa_backward_params &p, const sequence &seq, int batch, int head,
                                 int block, int thread) {
  const fa_attention_params &f = p.forward;
  int first = 0, extent = f.seqlen_k;
  if (f.cu_seqlens_k) {
    first = load_global(f.cu_seqlens_k + batch);
    extent = load_global(f.cu_seqlens_k + batch + 1) - first;
  }
  if (extent == seq.len_k) return;
  const int before = seq.k_row - first; /* len_k keys follow, then more masked ones */
  const int begin = block * C::BN, end = min_int(begin + C::BN, extent - max_int(seq.len_k, 0));
  const int64_t start = first, after = start + max_int(seq.len_k, 0);
  const int begin_after = max_int(begin, before);
  clear_keys<C>(p, batch, head, start + begin, min_int(end, before) - begin, thread);
  clear_keys<C>(p, batch, head, after + begin_after, end - begin_after, thread);
}

} // namespace fa

#endif
