/* How the backward pass is launched: kernels in stream order, all with fa_backward_params. There are two
 * ways. They differ in the gradients that a block of the main kernel keeps in registers, and so in those that
 * many blocks add to in memory.
 *
 * By keys:
 *   prepare        delta = rowsum(dO * O) - dLSE and log2(e) * LSE per row; clears the dQ accumulators.
 *                  grid (row blocks of the longest sequence, query heads, batch)
 *   main           dK, dV of one key block, all query heads of its group; adds dQ to an accumulator.
 *                  grid (key blocks of the longest sequence, or deterministic: n_splits; KV heads; batch)
 *   convert        dQ = scale * sum of the accumulators, rounded.
 *                  grid (row blocks of the longest sequence, query heads, batch)
 * By queries:
 *   prepare_only   prepare without clearing anything
 *   clear          clears the accumulators of dK and dV, one of each per query head.
 *                  grid (key row blocks of the longest sequence, query heads, batch)
 *   main           dQ of one row block of one query head; adds dK and dV to accumulators.
 *                  grid (row blocks of the longest sequence, or deterministic: n_splits; query heads; batch)
 *   convert_keys   dK and dV: sums over the accumulators and the group's heads, scaled, rounded.
 *                  grid (key row blocks of the longest sequence, KV heads, batch)
 *
 * By keys is the rule: it adds half as much in memory. By queries pays where there are few keys and many
 * rows, so that key blocks would leave most of the device idle: fa_backward_by_queries.
 *
 * Deterministic: block x of the main kernel works on blocks x, x + n_splits, ... in this order and has
 * accumulator x to itself; convert sums the accumulators in order. Otherwise there is one accumulator, and
 * what is added there (dQ by keys, dK and dV by queries) depends on the order in which blocks add to it.
 * Everything else is the same in every run either way.
 *
 * Workspace, in floats: lse_log2[heads_q][rows], delta[heads_q][rows], then
 * dq_accum[n_splits][heads_q][rows][D], or dk_accum and dv_accum[n_splits][heads_q][keys][D]; D = head_dim
 * rounded up to a multiple of 32.
 *   Padding      The rows (keys) of a sequence are padded to whole blocks of `block` rows. With fixed length
 *                sequence b begins at row b * (seqlen rounded up to a multiple of block), with variable
 *                length at (cu_seqlens[b] + b * block) rounded down to a multiple of block.
 *   Accumulator  16 x 8 tiles in the order of mma's accumulator registers, so that a warp adds to contiguous
 *                memory: tile (r, c) of a head begins at (r * D/8 + c) * 128, the four floats of a lane at
 *                4 * lane within it.
 * The caller need not initialise anything.
 *
 * Some main kernels are deterministic in another way: with one accumulator and dq_semaphore[heads_q][rows /
 * 32] at the end of the workspace, which prepare clears: 1 + the last key block that added to the tile of 64 rows, whose first
 * semaphore that is. Key blocks add in descending order. In clusters of two, each block has one of the two semaphores, for its
 * columns, and the number is that of the cluster.
 *
 * A gradient of the bias that is summed over the batch or the heads has two more launches: dbias_clear before
 * main, which then adds dS to accumulators, and dbias_convert after it. (If it is to be deterministic, or
 * summed over the rows too, the memeff kernels make it.) Its accumulators are last in the workspace:
 * dbias_accum[batch or 1][heads_q or 1], in 16 x 8 tiles as above, with rows and keys padded to
 * FA_DBIAS_PADDED. Main kernels for sm_90a have dS transposed and leave it in strips of FA_DBIAS_STRIP rows: of each 16 keys, one
 * behind the other, 16 x 8 tiles of keys and rows. Theirs is the order of the grid that brings blocks which add to the same sums
 * side by side, so that these are in the L2 cache:
 *   FA_GRID_KEYS_FIRST    as above
 *   FA_GRID_BATCH_FIRST   (batch, key blocks, KV heads), of sums over the batch
 *   FA_GRID_HEADS_FIRST   (KV heads, key blocks, batch), of sums over the heads, where these are more */
#ifndef FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_GRIDS_H
#define FA_GPU_KERNELS_PARAMS_FLASH_BACKWARD_GRIDS_H

#include <stddef.h>
#include <stdint.h>

#define FA_BACKWARD_THREADS 256 /* of every kernel but some of the main ones */
#define FA_DBIAS_CLEARED 16384  /* floats that one block of dbias_clear clears */
#define FA_DQ_SEMAPHORE_ROWS 32
#define FA_DBIAS_PADDED 128     /* a multiple of every main kernel's tile */
#define FA_DBIAS_STRIP 64
enum { FA_GRID_KEYS_FIRST, FA_GRID_BATCH_FIRST, FA_GRID_HEADS_FIRST };

#if defined(__CUDACC__)
#define FA_PLAN_FUNCTION __host__ __device__ constexpr
#elif defined(__cplusplus)
#define FA_PLAN_FUNCTION constexpr
#else
#define FA_PLAN_FUNCTION static inline
#endif

/* Rows, of queries or keys, of a block of the kernels around main: a multiple of the tiles of the main
 * kernels that add to them. */
FA_PLAN_FUNCTION int fa_backward_row_block(int head_dim) {
  return head_dim <= 64 ? 128 : 64;
}

/* Sizes of a call.
 *   seqlen_q, seqlen_k   of the longest sequence
 *   total_q, total_k     the last of cu_seqlens, or -1 for fixed length
 *   block_n, block_m     keys of a tile of the main kernel by keys; rows of a tile of the one by queries (0:
 *                        no such kernel)
 *   n_processors         of the device that the call is planned for; results of deterministic calls depend
 *                        on it unless n_splits gives the number of accumulators
 *   n_splits             0: chosen by fa_backward_splits */
typedef struct fa_backward_sizes {
  int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_k, total_q, total_k;
  int head_dim, block_n, block_m, n_processors, deterministic, n_splits;
} fa_backward_sizes;

typedef struct fa_backward_grids {
  int by_queries, n_splits;
  int64_t rows, keys, split_stride;
  int64_t lse_log2_at, delta_at, accum_at[2]; /* in floats from the start of the workspace, 256-byte aligned:
                                                 dQ's, or dK's and dV's */
  int64_t dq_semaphore_at;                    /* -1: no semaphores */
  int64_t n_floats;                           /* size of the workspace */
  unsigned rows_grid[3];                      /* prepare, prepare_only, convert; extents of 0: no launch */
  unsigned main_grid[3], clear_grid[3], convert_keys_grid[3];
} fa_backward_grids;

static inline int64_t fa_backward_blocks(int64_t n, int64_t of) {
  return (n + of - 1) / of;
}
static inline int64_t fa_backward_round_up(int64_t n, int64_t to) {
  return fa_backward_blocks(n, to) * to;
}

/* Work units of the main kernel: blocks whose gradients stay in registers. */
static inline int64_t fa_backward_key_blocks(const fa_backward_sizes *s) {
  return s->batch * s->heads_kv * fa_backward_blocks(s->seqlen_k, s->block_n);
}
static inline int64_t fa_backward_query_blocks(const fa_backward_sizes *s) {
  return s->batch * s->heads_q * fa_backward_blocks(s->seqlen_q, s->block_m);
}

/* Key blocks would keep at most half of the processors busy, and there are at least twice as many row blocks.
 * That makes up for adding two gradients in memory instead of one. */
static inline int fa_backward_by_queries(const fa_backward_sizes *s) {
  if (s->block_m == 0 || s->seqlen_k == 0) return 0;
  const int64_t by_keys = fa_backward_key_blocks(s), by_queries = fa_backward_query_blocks(s);
  return 2 * by_keys <= s->n_processors && by_queries >= 2 * by_keys;
}

/* Number of private accumulators, at most `blocks`: enough to keep the processors busy to the end. n of them
 * make pairs * n blocks of the main kernel, each with 1/n of the work, which run in waves of n_processors
 * blocks. Takes the smallest n whose waves are within about 10% of the shortest time. */
static inline int fa_backward_splits(const fa_backward_sizes *s, int64_t heads, int64_t blocks) {
  if (!s->deterministic) return 1;
  const int64_t pairs = s->batch * heads;
  int64_t most = pairs > 0 ? 2 * fa_backward_blocks(s->n_processors, pairs) : 1, n = 1;
  if (most > blocks) most = blocks;
  for (int64_t i = 2; i <= most; ++i) {
    const int64_t rounds = fa_backward_blocks(pairs * i, s->n_processors),
                  so_far = fa_backward_blocks(pairs * n, s->n_processors);
    if (10 * rounds * n < 9 * so_far * i) n = i;
  }
  if (s->n_splits > 0) n = s->n_splits;
  if (n > blocks) n = blocks;
  return n < 1 ? 1 : (int)n;
}

/* Rows of a head in the workspace. total: -1 for fixed length. */
static inline int64_t fa_backward_padded(const fa_backward_sizes *s, int64_t seqlen, int64_t total) {
  const int64_t block = fa_backward_row_block(s->head_dim);
  return total < 0 ? s->batch * fa_backward_round_up(seqlen, block)
                   : (total + s->batch * block) / block * block;
}

static inline void fa_backward_grid(const fa_backward_sizes *s, int64_t blocks, int64_t heads,
                                    unsigned grid[3]) {
  grid[0] = (unsigned)blocks;
  grid[1] = (unsigned)heads;
  grid[2] = (unsigned)s->batch;
}

static inline fa_backward_grids fa_backward_grids_make(const fa_backward_sizes *s) {
  fa_backward_grids p;
  const int64_t row_block = fa_backward_row_block(s->head_dim);
  p.by_queries = fa_backward_by_queries(s);
  const int64_t heads = p.by_queries ? s->heads_q : s->heads_kv;
  const int64_t blocks = p.by_queries ? fa_backward_blocks(s->seqlen_q, s->block_m)
                                      : fa_backward_blocks(s->seqlen_k, s->block_n);
  p.n_splits = fa_backward_splits(s, heads, blocks);
  p.rows = fa_backward_padded(s, s->seqlen_q, s->total_q);
  p.keys = fa_backward_padded(s, s->seqlen_k, s->total_k);
  p.split_stride = s->heads_q * (p.by_queries ? p.keys : p.rows) * fa_backward_round_up(s->head_dim, 32);
  p.lse_log2_at = 0;
  p.delta_at = fa_backward_round_up(s->heads_q * p.rows, 64);
  p.accum_at[0] = 2 * p.delta_at;
  p.accum_at[1] = p.accum_at[0] + p.n_splits * p.split_stride;
  p.n_floats = p.accum_at[p.by_queries] + p.n_splits * p.split_stride;
  p.dq_semaphore_at = s->deterministic && !p.by_queries ? p.n_floats : -1;
  if (p.dq_semaphore_at >= 0) p.n_floats += s->heads_q * p.rows / FA_DQ_SEMAPHORE_ROWS;
  fa_backward_grid(s, fa_backward_blocks(s->seqlen_q, row_block), s->heads_q, p.rows_grid);
  fa_backward_grid(s, s->deterministic && blocks > 0 ? p.n_splits : blocks, heads, p.main_grid);
  fa_backward_grid(s, fa_backward_blocks(s->seqlen_k, row_block), s->heads_q, p.clear_grid);
  fa_backward_grid(s, fa_backward_blocks(s->seqlen_k, row_block), s->heads_kv, p.convert_keys_grid);
  return p;
}

#endif
