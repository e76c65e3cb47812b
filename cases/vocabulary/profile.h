/* How a kernel does its arithmetic: the constants that the error bounds need. A backend names its own for
 * each problem; the judge knows nothing else about the kernel. Table and derivation: cases/vocabulary/profile.c,
 * docs/reference/bounds.md. */
#ifndef FA_CASES_VOCABULARY_PROFILE_H
#define FA_CASES_VOCABULARY_PROFILE_H

#include "cases/base/dtype.h"

#include <stdbool.h>

typedef struct fa_profile {
  const char *name; /* "mma-hopper", "mma-ampere", "simt-f32", "recorded" ... */
  double u_p;       /* unit roundoff of P when it enters the second GEMM; 0 = kept in f32 */
  double u_ds;      /* the same for dS */
  double u_p_in_ds; /* rounding of the P in dS = P (dP - delta): kernels that keep P in 16 bits only */
  double u_dropout; /* rounding of dropout's factor 1 / (1 - p), and once more of P times it */
  double floor_dq;  /* absolute error of adding a tile's part to dQ in memory: f32 atomics flush subnormals */
  double floor_dkv; /* the same for dK and dV */
  double floor_dbias;   /* and for each part of a summed dBias */
  double floor_p;       /* absolute rounding error of a P or dS below the normal range of that type */
  double floor_operand; /* absolute error of any operand of a product near 0: what is below the normal range
                           loses its lower bits */
  double max_p;         /* largest value of that type: a dS beyond it overflows in the kernel */
  bool max_rounded; /* P is relative to a maximum that may lag behind: the largest weight of a row is no 1,
                       and is rounded as the others are */
  bool exp_scaled; /* exp2(x s - m s), s = scale log2(e), by one fma: the error grows with |m|, not |x - m| */
  int mma_block;   /* products summed at once by the matrix unit, truncating; 0 = scalar FMA, nearest */
  int mma_extra_bits;      /* extra fraction bits kept inside such a block */
  double u_operand;        /* rounding of GEMM operands before the product (tf32: 2^-11 nearest); 0 = exact */
  double eps_exp;          /* relative error of one exponential */
  double eps_log;          /* absolute error of the final logarithm, in units of the result's natural log */
  double eps_tanh;         /* relative error of tanh (softcap) */
  bool fast_functions;     /* score_mod may go through the device's approximations: docs/reference/bounds.md */
  int block_n;             /* keys per tile of the running softmax */
  int max_splits;          /* partial results that may be combined (1 = none) */
  bool gqa_partials_in_io; /* dK/dV of a group are summed from partials rounded to the I/O type */
  bool dq_atomic;          /* dQ accumulated in f32 across tiles in any order: not bitwise repeatable */
  bool dkv_atomic;         /* the same for dK and dV, across row tiles and the heads of a group */
  bool dbias_atomic;       /* and for a summed dBias, across entries and heads */
  bool dbuffer_atomic;     /* and for gradients of buffers, across pairs */
  int block_m;             /* rows per tile that is added so: the least */
} fa_profile;

/* A row of the table for this element type; asserts that the name exists. Names: "mma-hopper", "mma-ampere",
 * "mma-volta" (tensor-core kernels), "simt-f32" (scalar f32, P and dS rounded to a 16-bit I/O type),
 * "3xtf32" (f32 through three tf32 products), "recorded" (a superset of these, for runs of unknown kernels),
 * "recorded-memeff" (the same for memory-efficient kernels: P passes through shared memory in 16 bits).
 */
fa_profile fa_profile_get(const char *name, fa_dtype dtype);

/* For a kernel that adds tiles of at least block_m rows to dK and dV in memory, in any order. */
void fa_profile_add_keys_in_memory(fa_profile *p, int block_m);
/* For one that adds the parts of a summed dBias in memory, in any order. */
void fa_profile_add_bias_in_memory(fa_profile *p);
bool fa_profile_exists(const char *name);

#endif
