/* Number formats, roundings and sums in the middle of a computation, by name. */
#ifndef FA_CASES_ARITHMETIC_FORMATS_H
#define FA_CASES_ARITHMETIC_FORMATS_H

#include "cases/base/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number format in the middle of a computation. IO: the call's element type. 3XTF32: a float as two tf32 numbers. */
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

/* What rounding to a format costs: at most u of the number, and at least `floor`; beyond `max` it overflows. */
typedef struct fa_format_error {
  double u, floor, max;
} fa_format_error;

/* For numbers that are kept in f32 until then. IO means dtype. F32, and IO for f32: u is 0. INT8: steps of 1 / 127
 * of the largest number of its block, which counts as 1. */
fa_format_error fa_format_error_of(fa_format f, fa_dtype dtype, fa_rounding rounding);
/* For numbers of an element type: u is 0 if the format has them all. */
fa_format_error fa_format_error_of_elements(fa_format f, fa_dtype dtype, fa_rounding rounding);

/* "io", "f32", "3xtf32" ...; "qk", "pv" ...; "nearest" ...; "f32", "mma" ...; "stored_o" ... NULL out of range. */
const char *fa_format_name(int i);
const char *fa_product_name(int i);
const char *fa_rounding_name(int i);
const char *fa_accumulator_name(int i);
const char *fa_delta_source_name(int i);

#ifdef __cplusplus
}
#endif

#endif
