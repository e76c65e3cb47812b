/* Problems for the test of the portable flex backward kernels: of fixed sizes, with memory, expressions, and
 * expected results computed by plain loops in double. */
#ifndef FA_TESTS_KERNELS_FLEX_BACKWARD_PROBLEM_H
#define FA_TESTS_KERNELS_FLEX_BACKWARD_PROBLEM_H

#include "cases/base/dtype.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/flex_functions.h"

#include <stdbool.h>
#include <stdint.h>

enum {
  B = 2,
  HQ = 2,
  HK = 1,
  SQ = 134,
  SK = 131,
  D = 68,
  DV = 36,
  TABLE = 41,
  Q_BLOCK = 48,
  KV_BLOCK = 80,
  N_Q = (SQ + Q_BLOCK - 1) / Q_BLOCK,
  N_KV = (SK + KV_BLOCK - 1) / KV_BLOCK,
  BLOCK_M = 128,
  BLOCK_N = 64,
  SHORT_BLOCK_N = 16,
  TILES_M = 2,
  TILES_N = (SQ + SHORT_BLOCK_N - 1) / SHORT_BLOCK_N,
  PAIRS = B * HQ * SQ * SK
};

typedef struct problem {
  const char *name;
  double softcap;
  bool alibi, bias, dlse, lists, mask, score, causal;
  int dbias_sums;
  bool exact, is_short; /* the kernels for short problems */
  bool is_bare;         /* those without code for anything but expressions and rows that begin anywhere */
  fa_dtype dtype;
} problem;

/* All memory that kernels may touch. */
extern struct flex_memory {
  _Alignas(16) float q[B * SQ * HQ * D], k[B * SK * HK * D], v[B * SK * HK * DV];
  float o[B * SQ * HQ * DV], d_o[B * SQ * HQ * DV], dq[B * SQ * HQ * D], dk[B * SK * HK * D],
      dv[B * SK * HK * DV];
  float bias[PAIRS], dbias[PAIRS];
  float lse[B * HQ * SQ], dlse[B * HQ * SQ], delta[B * HQ * SQ], alibi[B * HQ];
  float scales[HQ], table[TABLE];
  float d_scales[HQ], d_table[TABLE];
  uint64_t e_scales[HQ * FA_FLEX_EXACT_WORDS], e_table[TABLE * FA_FLEX_EXACT_WORDS];
  uint8_t map[B * HQ * N_Q * N_KV];
  int32_t keys_count[B * HQ * TILES_M], keys_entry[B * HQ * TILES_M * TILES_N];
  int32_t rows_count[B * HQ * TILES_M], rows_entry[B * HQ * TILES_M * TILES_N];
} memory;

/* The gradients computed by flex_expect. */
extern struct flex_wants {
  double dq[B * SQ * HQ * D], dk[B * SK * HK * D], dv[B * SK * HK * DV], dbias[PAIRS], scales[HQ],
      table[TABLE];
} wanted;

static const double scale = 0.2;

/* Elements of the problem's type. */
static inline void store(const problem *x, float *base, int64_t i, float f) {
  if (x->dtype == FA_F32)
    base[i] = f;
  else
    ((uint16_t *)base)[i] = fa_f32_to_f16(f);
}
static inline double load(const problem *x, const float *base, int64_t i) {
  return x->dtype == FA_F32 ? base[i] : fa_f16_to_f32(((const uint16_t *)base)[i]);
}

static inline int64_t q_at(int b, int i, int h) {
  return ((int64_t)(b * SQ + i) * HQ + h) * D;
}
static inline int64_t k_at(int b, int j, int h) {
  return ((int64_t)(b * SK + j) * HK + h) * D;
}
static inline int64_t o_at(int b, int i, int h) {
  return ((int64_t)(b * SQ + i) * HQ + h) * DV;
}
static inline int64_t v_at(int b, int j, int h) {
  return ((int64_t)(b * SK + j) * HK + h) * DV;
}
static inline int64_t row_at(int b, int h, int i) {
  return (int64_t)(b * HQ + h) * SQ + i;
}

/* Kind of the pair's block. */
int flex_kind_of(int b, int h, int i, int j);

/* score_mod, its derivatives and mask_mod; self: the problem. The score and derivatives of a masked pair may
 * be anything. */
float flex_score_of(void *self, float s, const fa_flex_pair *at);
float flex_derivative_of(void *self, float s, const fa_flex_pair *at, fa_flex_read *read);
int flex_mask_function(void *self, const fa_flex_pair *at);

/* Writes O and LSE to memory, and the gradients to wanted. */
void flex_expect(const problem *x);

#endif
