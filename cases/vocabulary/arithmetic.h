/* How a kernel computes, said field by field. A named set gives every field a value, single fields are changed
 * on top of it, and fa_arithmetic_profile turns the whole into the constants that the bounds need
 * (cases/vocabulary/profile.h). Meanings and sources: docs/reference/arithmetic.md. */
#ifndef FA_CASES_VOCABULARY_ARITHMETIC_H
#define FA_CASES_VOCABULARY_ARITHMETIC_H

#include "cases/base/status.h"
#include "cases/vocabulary/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number format in the middle of a computation. IO: the call's element type. */
typedef enum fa_format {
  FA_FORMAT_IO,
  FA_FORMAT_F32,
  FA_FORMAT_3XTF32,
  FA_FORMAT_TF32,
  FA_FORMAT_F16,
  FA_FORMAT_BF16,
  FA_FORMAT_E4M3,
  FA_FORMAT_E5M2,
  FA_FORMAT_INT8,
  FA_N_FORMATS
} fa_format;

/* The six matrix products, forward and backward. */
typedef enum fa_product {
  FA_PRODUCT_QK, /* S = Q K^T, also when the backward computes it again */
  FA_PRODUCT_PV, /* O = P V */
  FA_PRODUCT_DP, /* dP = dO V^T */
  FA_PRODUCT_DV, /* dV = P^T dO */
  FA_PRODUCT_DQ, /* dQ = dS K */
  FA_PRODUCT_DK, /* dK = dS^T Q */
  FA_N_PRODUCTS
} fa_product;

typedef enum fa_rounding { FA_ROUND_NEAREST, FA_ROUND_TRUNCATE, FA_N_ROUNDINGS } fa_rounding;

/* Where products are added up. F32: scalar or vector fma, to nearest, in any order. MMA: f32 in a matrix unit
 * that truncates, in blocks of mma_block products with mma_extra_bits extra bits. NARROW: the same with about 14
 * bits (8-bit products on Hopper). F16, BF16: that type after each block. */
typedef enum fa_accumulator {
  FA_ACCUMULATOR_F32,
  FA_ACCUMULATOR_MMA,
  FA_ACCUMULATOR_NARROW,
  FA_ACCUMULATOR_F16,
  FA_ACCUMULATOR_BF16,
  FA_N_ACCUMULATORS
} fa_accumulator;

/* Where dS = P (dP - delta) takes delta from. STORED_O: sum dO O with the O that it returned, rounded to the I/O
 * type. EXACT_O: with O before that rounding. SUM_P_DP: sum P dP, as in automatic differentiation. */
typedef enum fa_delta_source {
  FA_DELTA_STORED_O,
  FA_DELTA_EXACT_O,
  FA_DELTA_SUM_P_DP,
  FA_N_DELTAS
} fa_delta_source;

typedef struct fa_arithmetic {
  const char *name;                 /* of the set that it began as; static */
  fa_format operand[FA_N_PRODUCTS]; /* what operands that come from memory are rounded to; IO: not at all */
  fa_accumulator accumulator[FA_N_PRODUCTS];
  int mma_block, mma_extra_bits;
  fa_format scores; /* S as the softmax receives it; F32: not rounded */
  fa_format p, ds;  /* P and dS as operands; F32: not rounded */
  fa_rounding p_rounding, ds_rounding;
  double p_scale; /* P is multiplied by it before it is rounded: 1, 256, 448 */
  fa_delta_source delta;
  bool p_kept;  /* the backward uses the forward's P; otherwise exp(x - LSE), of the LSE that it returned */
  bool p_in_ds; /* the P in dS = P (dP - delta) is the rounded one */
  bool dropout_rounded; /* dropout's factor and its product with P are rounded as P is */
  bool max_lags;        /* the running maximum may lag behind, so that a row's largest P is not 1 */
  bool exp_scaled;      /* exp2(x s - m s), s = scale log2(e), by one fma */
  double eps_exp, eps_log, eps_tanh; /* relative; of the logarithm: absolute */
  bool fast_functions;
  int block_n, block_m, max_splits;
  bool gqa_partials_rounded, dq_atomic, dkv_atomic, dbias_atomic, dbuffer_atomic;
} fa_arithmetic;

/* Sets every field as the named set has it for this element type. False: no such set. */
bool fa_arithmetic_named(const char *name, fa_dtype dtype, fa_arithmetic *out);
const char *fa_arithmetic_name(int i); /* the i-th set's name; NULL: there are no more */
const char *fa_arithmetic_what(int i); /* what it is of, in one line */

/* Changes one field by its key, as a hello's "arithmetic" has it: "p", "operand_qk", "delta", "block_n" ... A word, a
 * number or a flag, whichever the field takes. FA_ERR_INPUT names the key and what it may be. */
typedef struct fa_arithmetic_value {
  const char *word; /* NULL: not a word */
  bool is_number, is_flag, flag;
  double number;
} fa_arithmetic_value;
fa_status fa_arithmetic_set(fa_arithmetic *a, const char *key, const fa_arithmetic_value *value,
                            fa_error *err);
/* Every key with its value as text, for printing: i from 0; false: no more. A word or number without quotes. */
bool fa_arithmetic_get(const fa_arithmetic *a, int i, const char **key, char *value, size_t size);

fa_profile fa_arithmetic_profile(const fa_arithmetic *a, fa_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
