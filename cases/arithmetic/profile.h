/* Arithmetic profile of a kernel: the constants that the error bounds need. A backend names a profile for
 * each problem, and the judge knows nothing else about the kernel. It is made from fields that a person can read
 * (cases/arithmetic/fields.h). Derivation: docs/reference/bounds.md. */
#ifndef FA_CASES_ARITHMETIC_PROFILE_H
#define FA_CASES_ARITHMETIC_PROFILE_H

#include "cases/arithmetic/formats.h"
#include "cases/base/dtype.h"

#include <stdbool.h>

typedef struct fa_profile {
  const char *name;   /* "mma-hopper", "mma-ampere", "simt-f32", "recorded" ... */
  double u_p;         /* unit roundoff of P as an operand of the second GEMM; 0 = kept in f32 */
  double u_ds;        /* the same for dS */
  double u_p_in_ds;   /* rounding of the P in dS = P (dP - delta), for kernels that keep P only in 16 bits */
  double u_dropout;   /* rounding of dropout's factor 1 / (1 - p), and again of P times it */
  double floor_dq;    /* absolute error of adding a tile to dQ in memory: f32 atomics flush subnormals */
  double floor_dkv;   /* the same for dK and dV */
  double floor_dbias; /* the same for each part of a summed dBias */
  double floor_p;     /* absolute rounding error of a P or dS below the normal range of that type */
  double floor_operand; /* absolute error of a GEMM operand near 0: subnormals lose their lower bits */
  double max_p;         /* largest value of that type: a larger dS overflows in the kernel */
  bool max_rounded;     /* the row max may lag behind: a row's largest P is not 1 and is rounded too */
  bool exp_scaled; /* exp2(x s - m s), s = scale log2(e), by one fma: the error grows with |m|, not |x - m| */
  int mma_block;   /* products that the matrix unit adds at once, truncating; 0 = scalar FMA, nearest */
  int mma_extra_bits;  /* extra fraction bits kept inside such a block */
  double u_operand;    /* rounding of operands before a GEMM (tf32: 2^-11 nearest); 0 = exact */
  double eps_exp;      /* relative error of one exponential */
  double eps_log;      /* absolute error of the final logarithm, in units of the natural logarithm */
  double eps_tanh;     /* relative error of tanh (softcap) */
  bool fast_functions; /* score_mod may go through the device's approximations (docs/reference/bounds.md) */
  int block_n;         /* keys per tile of the running softmax */
  int max_splits;      /* most partial results that may be combined (1 = no splits) */
  bool gqa_partials_in_io; /* dK/dV of a group of heads are summed from partials rounded to the I/O type */
  bool dq_atomic;          /* dQ is accumulated in f32 across tiles in any order: not bitwise repeatable */
  bool dkv_atomic;         /* the same for dK and dV, across row tiles and the heads of a group */
  bool dbias_atomic;       /* the same for a summed dBias, across sequences and heads */
  bool dbuffer_atomic;     /* the same for gradients of captured buffers, across pairs */
  bool dsinks_atomic;      /* the same for gradients of sinks, across rows and sequences */
  int block_m;             /* fewest rows per tile that is added this way */
  /* What our own kernels do not do: all 0 for them, but for floor_ds and the maxima. */
  fa_delta_source delta;
  bool p_kept;           /* P of the backward is the forward's: the LSE plays no part in it */
  bool library_products; /* sums of the same products need not have the same bits in another call */
  fa_accumulator accumulator[FA_N_PRODUCTS]; /* F32 and MMA: as mma_block says */
  double operand[FA_N_PRODUCTS];             /* as u_operand, which is the largest of them */
  double operand_floor[FA_N_PRODUCTS]; /* absolute rounding error of a small operand; 0: none to speak of */
  double operand_step[FA_N_PRODUCTS];  /* rounding error of an operand per largest one of its tensor */
  double operand_max[FA_N_PRODUCTS];   /* larger operands overflow */
  double u_scores, floor_scores, max_scores; /* of every step from q.k to the final score; 0: not rounded */
  double u_dp, floor_dp, max_dp;             /* of dP, before delta is subtracted */
  double floor_ds;                           /* as floor_p, of dS */
  bool ds_scaled;                            /* dS is multiplied by the scale before it is rounded */
  double u_delta, floor_delta;               /* of the products dO O and of their sum; 0: not rounded */
  double truncated_p, truncated_ds; /* u of a P or dS that is cut towards 0, so that errors are one-sided */
  bool operands_cut;                /* operands are cut towards 0 and not rounded */
  double max_weight; /* the largest weight, a maximum being 1, that an 8-bit P holds; else inf */
  double u_partials, floor_partials, max_partials; /* of the parts of O that splits leave */
  int accumulator_keys; /* keys that one narrow accumulator of P V adds up, in their order; 0: all of a row's */
  bool descales;        /* operands of 8 bits have been multiplied by descales, somewhere */
  bool p_descaled;      /* V's descales are in P when it is rounded */
  double u_o_descaled, floor_o_descaled; /* of O, which is rounded before V's descale and again behind it */
  double u_lse;                          /* relative rounding of a returned LSE beyond f32's own */
} fa_profile;

/* The profile of a named set (fa_arithmetic_named); asserts that it exists. Of our own kernels:
 *   "mma-hopper", "mma-ampere", "mma-volta"  tensor-core kernels
 *   "simt-f32"         scalar f32; P and dS rounded to a 16-bit I/O type
 *   "3xtf32"           f32 through three tf32 products
 *   "recorded"         a superset of these, for runs of unknown kernels
 *   "recorded-memeff"  the same for memory-efficient kernels: P passes through shared memory in 16 bits */
fa_profile fa_profile_get(const char *name, fa_dtype dtype);

/* For a kernel that adds tiles of at least block_m rows to dK and dV in memory, in any order. */
void fa_profile_add_keys_in_memory(fa_profile *p, int block_m);
/* For a kernel that adds the parts of a summed dBias in memory, in any order. */
void fa_profile_add_bias_in_memory(fa_profile *p);
bool fa_profile_exists(const char *name);

#endif
