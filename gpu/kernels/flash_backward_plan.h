/* How the backward pass is launched: three kernels in stream order, all with fa_flash_backward_params.
 *
 *   prepare   delta = rowsum(dO * O) - dLSE and log2(e) * LSE per row; clears the dQ accumulators.
 *             grid (row blocks of the longest entry, query heads, batch)
 *   main      dK, dV of one key block, all query heads of its group; adds dQ to an accumulator.
 *             grid (key blocks of the longest entry, or deterministic: n_splits; KV heads; batch)
 *   convert   dQ = scale * sum of the accumulators, rounded.
 *             grid (row blocks of the longest entry, query heads, batch)
 *
 * Deterministic: block x of the main kernel takes key blocks x, x + n_splits, ... in this order and has
 * accumulator x to itself, and convert sums accumulators in order. Otherwise there is one accumulator, and
 * dQ depends on the order in which blocks came to add. dK and dV are the same in every run either way.
 *
 * Workspace, in floats: lse_log2[heads_q][rows], delta[heads_q][rows], dq_accum[n_splits][heads_q][rows][D],
 * rows of an entry padded to whole blocks: entry b of fixed length begins at row b * ceil(seqlen_q to
 * block_m), of variable length at (cu_seqlens_q[b] + b * block_m) rounded down to block_m. An accumulator
 * holds 16 x 8 tiles in the order of mma's accumulator registers, so that adding is contiguous over a warp:
 * tile (r, c) of a head at ((r * D/8 + c) * 32 + lane) * 4. Nothing needs to be initialised by the caller. */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_PLAN_H
#define FA_GPU_KERNELS_FLASH_BACKWARD_PLAN_H

#include <stddef.h>
#include <stdint.h>

#define FA_FLASH_BACKWARD_THREADS 256 /* of every kernel */

#ifdef __cplusplus
#define FA_PLAN_FUNCTION constexpr
#else
#define FA_PLAN_FUNCTION static inline
#endif

typedef struct fa_flash_backward_plan {
  int block_m, block_n; /* query rows, keys of a tile */
  size_t shared_bytes;  /* dynamic, of the main kernel; the others use none */
  int n_splits;
  int64_t rows, split_stride;
  int64_t lse_log2_at, delta_at, dq_accum_at,
      n_floats; /* the parts of one workspace, each 256-byte aligned */
  unsigned prepare_grid[3], main_grid[3], convert_grid[3]; /* an extent of 0: nothing to launch */
} fa_flash_backward_plan;

/* Sizes of a call. seqlen_q, seqlen_k: of the longest entry. total_q: cu_seqlens_q[batch], or -1 for fixed
 * length. n_processors: multiprocessors of the device; a deterministic result is the same on all devices that
 * have as many. */
typedef struct fa_flash_backward_sizes {
  int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_k, total_q;
  int head_dim, n_processors, deterministic;
} fa_flash_backward_sizes;

FA_PLAN_FUNCTION int fa_flash_backward_block_m(int head_dim) {
  return head_dim <= 64 ? 128 : 64;
}
FA_PLAN_FUNCTION int fa_flash_backward_block_n(int head_dim) {
  return head_dim <= 128 ? 128 : 64;
}
/* K and V, Q and dO twice, P and dS, LSE and delta twice. */
FA_PLAN_FUNCTION size_t fa_flash_backward_shared_bytes(int head_dim) {
  const size_t m = (size_t)fa_flash_backward_block_m(head_dim),
               n = (size_t)fa_flash_backward_block_n(head_dim);
  return 2 * ((2 * n + 4 * m) * (size_t)head_dim + 2 * m * n) + 16 * m;
}

static inline int64_t fa_flash_backward_round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/* Enough private accumulators to keep the device busy, but not more than there are key blocks. */
static inline int fa_flash_backward_splits(const fa_flash_backward_sizes *s) {
  if (!s->deterministic) return 1;
  const int64_t block_n = fa_flash_backward_block_n(s->head_dim), pairs = s->batch * s->heads_kv;
  const int64_t blocks = (s->seqlen_k + block_n - 1) / block_n;
  int64_t n = pairs > 0 ? (s->n_processors + pairs - 1) / pairs : 1;
  if (n > blocks) n = blocks;
  return n < 1 ? 1 : (int)n;
}

static inline fa_flash_backward_plan fa_flash_backward_plan_make(const fa_flash_backward_sizes *s) {
  fa_flash_backward_plan p;
  p.block_m = fa_flash_backward_block_m(s->head_dim);
  p.block_n = fa_flash_backward_block_n(s->head_dim);
  p.shared_bytes = fa_flash_backward_shared_bytes(s->head_dim);
  p.n_splits = fa_flash_backward_splits(s);
  const int64_t m = p.block_m;
  p.rows = s->total_q < 0 ? s->batch * fa_flash_backward_round_up(s->seqlen_q, m)
                          : (s->total_q + s->batch * m) / m * m;
  p.split_stride = s->heads_q * p.rows * s->head_dim;
  p.lse_log2_at = 0;
  p.delta_at = fa_flash_backward_round_up(s->heads_q * p.rows, 64);
  p.dq_accum_at = 2 * p.delta_at;
  p.n_floats = p.dq_accum_at + p.n_splits * p.split_stride;
  const unsigned row_blocks = (unsigned)((s->seqlen_q + m - 1) / m);
  const unsigned key_blocks = (unsigned)((s->seqlen_k + p.block_n - 1) / p.block_n);
  p.prepare_grid[0] = p.convert_grid[0] = row_blocks;
  p.prepare_grid[1] = p.convert_grid[1] = (unsigned)s->heads_q;
  p.prepare_grid[2] = p.main_grid[2] = p.convert_grid[2] = (unsigned)s->batch;
  p.main_grid[0] = s->deterministic && key_blocks > 0 ? (unsigned)p.n_splits : key_blocks;
  p.main_grid[1] = (unsigned)s->heads_kv;
  return p;
}

#endif
