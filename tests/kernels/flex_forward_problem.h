/* Problems for the test of the portable flex forward kernels: calls, their memory, score_mod and mask_mod,
 * and expected results in float64. */
#ifndef FA_TESTS_KERNELS_FLEX_FORWARD_PROBLEM_H
#define FA_TESTS_KERNELS_FLEX_FORWARD_PROBLEM_H

#include "cases/base/dtype.h"
#include "gpu/kernels/params/flex_functions.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { BATCH = 2, MAX_HEADS = 4, MAX_ROWS = 280, MAX_D = 160, MAX_BLOCKS = 16 };
enum { ELEMENTS = BATCH * MAX_HEADS * MAX_ROWS * MAX_D, MAPS = BATCH * MAX_HEADS * MAX_BLOCKS * MAX_BLOCKS };

/* What score_mod and mask_mod do here. */
enum modes {
  M_SCORE = 1,     /* 1.5 s + 0.1 (h + 1) - 0.01 (i - j) */
  M_MASK = 2,      /* (i + 2 j + h + b) % 3 != 0 */
  M_GARBAGE = 4,   /* scores of masked pairs are NaN, inf or the largest float */
  M_MINUS_INF = 8, /* score_mod masks keys below the row's number / 2, and all of row 5 */
  M_NOBODY = 16    /* mask_mod is always false */
};

typedef struct call {
  const char *name;
  fa_dtype dtype;
  int heads, heads_kv, rows, keys, d, dv;
  int mode;
  int q_block, kv_block; /* 0: no lists */
  int kinds;             /* of blocks: a bit for each fa_flex_kind that may occur */
  bool shared_lists;     /* the same for all heads */
  float softcap;
  bool alibi, bias;
  int window_left, window_right, top_left;
  bool lengths; /* seqused_k and leftpad_k */
} call;

/* All memory that kernels may touch, except used and pads. */
extern struct flex_memory {
  _Alignas(16) float q[ELEMENTS], k[ELEMENTS], v[ELEMENTS], bias[BATCH * MAX_HEADS * MAX_ROWS * MAX_ROWS];
  uint16_t q16[ELEMENTS], k16[ELEMENTS], v16[ELEMENTS], o16[ELEMENTS];
  float o[ELEMENTS], lse[BATCH * MAX_HEADS * MAX_ROWS], slopes[MAX_HEADS];
  uint8_t map[MAPS];
  int32_t counts[BATCH * MAX_HEADS * 8], entries[BATCH * MAX_HEADS * 8 * 8];
} memory;
extern const int32_t used[BATCH], pads[BATCH];
extern const call *now;
extern atomic_int full_asked; /* mask_mod was called for a pair in a full block */

static inline int n_blocks(int n, int of) {
  return (n + of - 1) / of;
}

/* Kind of the block of a pair in the call `now`. */
int flex_block_kind(int b, int h, int i, int j);

float flex_score_mod(void *self, float score, const fa_flex_pair *at);
int flex_mask_mod(void *self, const fa_flex_pair *at);

/* Number of wrong elements; sets *empty to the number of fully masked rows. */
int flex_wrong_elements(const call *c, int *empty);

#endif
