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
 * D = head_dim up to a multiple of 32. Rows of an entry are padded to whole blocks of `block` rows: entry b
 * of fixed length begins at row b * (seqlen_q up to a multiple of block), of variable length at
 * (cu_seqlens_q[b] + b * block) down to a multiple. An accumulator holds 16 x 8 tiles in the order of mma's
 * accumulator registers, so that adding is contiguous over a warp: tile (r, c) of a head begins at
 * (r * D/8 + c) * 128, a lane's four floats 4 * lane further. Nothing needs to be initialised by the caller.
 */
#ifndef FA_GPU_KERNELS_FLASH_BACKWARD_PLAN_H
#define FA_GPU_KERNELS_FLASH_BACKWARD_PLAN_H

#include <stddef.h>
#include <stdint.h>

#define FA_FLASH_BACKWARD_THREADS 256 /* of every kernel */

#if defined(__CUDACC__)
#define FA_PLAN_FUNCTION __host__ __device__ constexpr
#elif defined(__cplusplus)
#define FA_PLAN_FUNCTION constexpr
#else
#define FA_PLAN_FUNCTION static inline
#endif

/* Query rows of a block of prepare and convert; whole tiles of the main kernel. */
FA_PLAN_FUNCTION int fa_flash_backward_row_block(int head_dim) {
  return head_dim <= 64 ? 128 : 64;
}

/* Sizes of a call. seqlen_q, seqlen_k: of the longest entry. total_q: cu_seqlens_q[batch], or -1 for fixed
 * length. block_n: keys of a tile of the main kernel. n_processors: of the device that deterministic calls
 * are planned for; their result depends on it. */
typedef struct fa_flash_backward_sizes {
  int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_k, total_q;
  int head_dim, block_n, n_processors, deterministic;
} fa_flash_backward_sizes;

typedef struct fa_flash_backward_plan {
  int n_splits;
  int64_t rows, split_stride;
  int64_t lse_log2_at, delta_at, dq_accum_at,
      n_floats; /* the parts of one workspace, each 256-byte aligned */
  unsigned prepare_grid[3], main_grid[3], convert_grid[3]; /* an extent of 0: nothing to launch */
} fa_flash_backward_plan;

static inline int64_t fa_flash_backward_round_up(int64_t n, int64_t to) {
  return (n + to - 1) / to * to;
}

/* Enough private accumulators to keep the device busy, but not more than there are key blocks. */
static inline int fa_flash_backward_splits(const fa_flash_backward_sizes *s) {
  if (!s->deterministic) return 1;
  const int64_t pairs = s->batch * s->heads_kv, blocks = (s->seqlen_k + s->block_n - 1) / s->block_n;
  int64_t n = pairs > 0 ? (s->n_processors + pairs - 1) / pairs : 1;
  if (n > blocks) n = blocks;
  return n < 1 ? 1 : (int)n;
}

static inline fa_flash_backward_plan fa_flash_backward_plan_make(const fa_flash_backward_sizes *s) {
  fa_flash_backward_plan p;
  const int64_t block = fa_flash_backward_row_block(s->head_dim);
  p.n_splits = fa_flash_backward_splits(s);
  p.rows = s->total_q < 0 ? s->batch * fa_flash_backward_round_up(s->seqlen_q, block)
                          : (s->total_q + s->batch * block) / block * block;
  p.split_stride = s->heads_q * p.rows * fa_flash_backward_round_up(s->head_dim, 32);
  p.lse_log2_at = 0;
  p.delta_at = fa_flash_backward_round_up(s->heads_q * p.rows, 64);
  p.dq_accum_at = 2 * p.delta_at;
  p.n_floats = p.dq_accum_at + p.n_splits * p.split_stride;
  const unsigned key_blocks = (unsigned)((s->seqlen_k + s->block_n - 1) / s->block_n);
  p.prepare_grid[0] = p.convert_grid[0] = (unsigned)((s->seqlen_q + block - 1) / block);
  p.prepare_grid[1] = p.convert_grid[1] = (unsigned)s->heads_q;
  p.prepare_grid[2] = p.main_grid[2] = p.convert_grid[2] = (unsigned)s->batch;
  p.main_grid[0] = s->deterministic && key_blocks > 0 ? (unsigned)p.n_splits : key_blocks;
  p.main_grid[1] = (unsigned)s->heads_kv;
  return p;
}

#endif
