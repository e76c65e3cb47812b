/* The expressions of a call as function pointers: kernels on the host executor call these where kernels on a
 * device have compiled code. Whoever plans a call on the host provides them. */
#ifndef FA_GPU_KERNELS_PARAMS_FLEX_FUNCTIONS_H
#define FA_GPU_KERNELS_PARAMS_FLEX_FUNCTIONS_H

#include "gpu/kernels/params/flex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* b, h: sequence and query head; i, j: row and key within the sequence, keys counted from leftpad on. */
typedef struct fa_flex_pair {
  int b, h, i, j, len_q, len_k;
} fa_flex_pair;

/* One read of a buffer whose gradient is wanted: d score_mod / d element. */
typedef struct fa_flex_read {
  int buffer;
  int64_t element; /* row-major index */
  float derivative;
} fa_flex_read;

struct fa_flex_functions {
  void *self;
  /* score: after scale and softcap. NULL: the call has no such expression. */
  float (*score)(void *self, float score, const fa_flex_pair *at);
  int (*mask)(void *self, const fa_flex_pair *at);
  /* Returns d score_mod / d score, and fills read[n_reads]. NULL: no score_mod. */
  float (*derivative)(void *self, float score, const fa_flex_pair *at, fa_flex_read *read);
  int n_reads; /* reads of buffers whose gradient is wanted; at most FA_FLEX_MAX_READS */
};

enum { FA_FLEX_MAX_READS = 1024 };

#ifdef __cplusplus
}
#endif

#endif
