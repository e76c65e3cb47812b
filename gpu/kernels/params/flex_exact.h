/* Gradients of captured buffers, before and after the kernels that add to them: cleared, and where the sums
 * are to be the same in every run, rounded from exact ones. No kernel here knows the expressions. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_EXACT_H
#define FA_GPU_KERNELS_PARAMS_FLEX_EXACT_H

#include "gpu/kernels/params/flex.h"

/* uint64_t of an element's exact sum (gpu/kernels/mods/exact.cuh), and how many additions to one element it holds for
 * certain: a deterministic call whose pairs times reads of a buffer are more must be refused. */
#define FA_FLEX_EXACT_WORDS 16
#define FA_FLEX_EXACT_ADDITIONS ((int64_t)1 << 38)

/* Elements that one block clears or rounds: grid (blocks of the longest buffer, FA_FLEX_CAPTURED). */
#define FA_FLEX_EXACT_ELEMENTS 256
#define FA_FLEX_EXACT_THREADS 256

/* In stream order: clear; the backward kernels, with the same pointers in their fa_flex_args; round, if there
 * are exact sums. */
typedef struct fa_flex_exact_params {
  float *dbuffer[FA_FLEX_CAPTURED];  /* dense, row-major; NULL: not wanted. clear writes zeros where exact is
                                       NULL */
  uint64_t *exact[FA_FLEX_CAPTURED]; /* [n][FA_FLEX_EXACT_WORDS], or NULL: clear writes zeros, round reads */
  int64_t n[FA_FLEX_CAPTURED];       /* elements */
} fa_flex_exact_params;

#endif
