/* Arguments of flex kernels (score_mod, mask_mod, block lists) beyond those of the others, filled in by the
 * host and read by the device. All zero for the other families. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_H
#define FA_GPU_KERNELS_PARAMS_FLEX_H

#include <stdint.h>

enum { FA_FLEX_CAPTURED = 32 }; /* FA_MAX_CAPTURES */

/* What the block lists say of a block, and of a tile that lies in one block or spans several. */
enum fa_flex_kind {
  FA_FLEX_FULLY_MASKED, /* blocks only: every pair is masked */
  FA_FLEX_PARTIAL,      /* mask_mod decides on every pair */
  FA_FLEX_FULL,         /* mask_mod is not evaluated */
  FA_FLEX_MIXED         /* tiles only: spans blocks of different kinds, so the map is read for every pair */
};

/* The tiles that a kernel visits, for each of its tiles along one axis. Made from the map for the kernel's
 * own tile sizes.
 *   count: [batch|1][heads|1][n]; NULL: no lists, every tile is visited
 *   entry: [batch|1][heads|1][n][capacity], ascending: tile * 4 + kind
 * Strides are in tiles of that axis; 0: broadcast. */
typedef struct fa_flex_lists {
  const int32_t *count, *entry;
  int n, capacity;
  int64_t batch_stride, head_stride;
} fa_flex_lists;

/* Calls into an interpreter of the expressions; on the host only. */
typedef struct fa_flex_functions fa_flex_functions;

typedef struct fa_flex_args {
  const void *buffer[FA_FLEX_CAPTURED]; /* captured buffers, in the problem's order */
  /* fa_flex_kind of each block, [batch|1][heads|1][n_q_blocks][n_kv_blocks]; NULL: no lists */
  const uint8_t *map;
  int q_block, kv_block, n_q_blocks, n_kv_blocks;
  int64_t map_batch_stride, map_head_stride; /* in bytes; 0: broadcast */
  fa_flex_lists keys;                        /* of each row tile: the key tiles that it visits */
  fa_flex_lists rows; /* backward, of each key tile: the row tiles that visit it; by query head */
  /* Gradients of captured buffers in f32, dense and row-major, which the backward kernels add to; cleared before. NULL: not
   * wanted. exact: used instead where sums must not depend on their order (gpu/kernels/mods/exact.cuh). */
  float *dbuffer[FA_FLEX_CAPTURED];
  uint64_t *exact[FA_FLEX_CAPTURED];
  const fa_flex_functions *functions; /* NULL on a device */
} fa_flex_args;

/* ---- exact sums ----
 * Arguments of the kernels around a flex backward that clear the gradients of captured buffers and, where the
 * sums must be the same in every run, round the exact sums. They are the same for all expressions. */

/* FA_FLEX_EXACT_WORDS: uint64_t in the exact sum of one element (gpu/kernels/mods/exact.cuh).
 * FA_FLEX_EXACT_ADDITIONS: additions to one element that it is guaranteed to hold. A deterministic call with
 * more of them (pairs times reads of a buffer) must be refused. */
#define FA_FLEX_EXACT_WORDS 16
#define FA_FLEX_EXACT_ADDITIONS ((int64_t)1 << 38)

/* Elements that one block clears or rounds. Grid: (blocks of the longest buffer, buffers). */
#define FA_FLEX_EXACT_ELEMENTS 256
#define FA_FLEX_EXACT_THREADS 256

/* What a gradient is stored as, behind its sums in f32. */
enum fa_flex_stored { FA_FLEX_AS_F32, FA_FLEX_AS_F16, FA_FLEX_AS_BF16 };

/* In stream order: clear; the backward kernels, with the same pointers in their fa_flex_args; round, if there
 * are exact sums or gradients of 16 bits. */
typedef struct fa_flex_exact_params {
  float *dbuffer[FA_FLEX_CAPTURED];  /* sums, dense, row-major. Cleared if exact is NULL */
  uint64_t *exact[FA_FLEX_CAPTURED]; /* [n][FA_FLEX_EXACT_WORDS], or NULL; cleared */
  void *out[FA_FLEX_CAPTURED];       /* the gradient, dense, row-major; NULL: not wanted. What is in f32 without exact sums
                                        is its own sum, and not rounded */
  unsigned char stored[FA_FLEX_CAPTURED]; /* fa_flex_stored */
  int64_t n[FA_FLEX_CAPTURED];            /* elements */
} fa_flex_exact_params;

#endif
