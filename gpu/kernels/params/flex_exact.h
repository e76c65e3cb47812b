/* Arguments of the kernels around a flex backward that clear the gradients of captured buffers and, where the
 * sums must be the same in every run, round the exact sums. They are the same for all expressions. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_EXACT_H
#define FA_GPU_KERNELS_PARAMS_FLEX_EXACT_H

#include "gpu/kernels/params/flex.h"

/* FA_FLEX_EXACT_WORDS: uint64_t in the exact sum of one element (gpu/kernels/mods/exact.cuh).
 * FA_FLEX_EXACT_ADDITIONS: additions to one element that it is guaranteed to hold. A deterministic call with
 * more of them (pairs times reads of a buffer) must be refused. */
#define FA_FLEX_EXACT_WORDS 16
#define FA_FLEX_EXACT_ADDITIONS ((int64_t)1 << 38)

/* Elements that one block clears or rounds. Grid: (blocks of the longest buffer, FA_FLEX_CAPTURED). */
#define FA_FLEX_EXACT_ELEMENTS 256
#define FA_FLEX_EXACT_THREADS 256

/* In stream order: clear; the backward kernels, with the same pointers in their fa_flex_args; round, if there
 * are exact sums. */
typedef struct fa_flex_exact_params {
  float *dbuffer[FA_FLEX_CAPTURED]; /* dense, row-major; NULL: not wanted. Cleared if exact is NULL */
  uint64_t
      *exact[FA_FLEX_CAPTURED]; /* [n][FA_FLEX_EXACT_WORDS], or NULL; cleared, then rounded into dbuffer */
  int64_t n[FA_FLEX_CAPTURED];  /* elements */
} fa_flex_exact_params;

#endif
