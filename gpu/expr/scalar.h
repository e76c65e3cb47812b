/* One operation of an expression on single numbers in f32 and int32, shared by everything that evaluates
 * expressions as kernels do. Integers wrap; integer x / 0 and x % 0 are 0 (docs/reference/expressions.md,
 * "Kernels"). */
#ifndef FA_GPU_EXPR_SCALAR_H
#define FA_GPU_EXPR_SCALAR_H

#include "cases/expr/ast.h"

#include <math.h>
#include <string.h>

/* One element: f for float nodes, i for int and bool nodes. */
typedef union fa_f32_word {
  float f;
  int32_t i;
} fa_f32_word;

/* An element of a buffer. Of an i64 the lowest 32 bits, as ints wrap. */
static inline fa_f32_word fa_scalar_load(fa_dtype dtype, const void *at) {
  fa_f32_word word = {.i = 0};
  uint16_t half;
  switch (dtype) {
  case FA_F16:
  case FA_BF16:
    memcpy(&half, at, sizeof half);
    word.f = dtype == FA_F16 ? fa_f16_to_f32(half) : fa_bf16_to_f32(half);
    break;
  case FA_BOOL:
    word.i = *(const unsigned char *)at != 0;
    break;
  default: /* f32, i32, and the first half of an i64 */
    memcpy(&word, at, sizeof word);
  }
  return word;
}

/* ---- comparisons, of both types ---- */

/* NaN is neither less, equal nor greater, hence only unequal. */
static inline bool fa_scalar_compare(fa_expr_op op, bool less, bool equal, bool greater) {
  switch (op) {
  case FA_EXPR_LT:
    return less;
  case FA_EXPR_LE:
    return less || equal;
  case FA_EXPR_GT:
    return greater;
  case FA_EXPR_GE:
    return greater || equal;
  case FA_EXPR_EQ:
    return equal;
  default:
    return !equal;
  }
}

/* ---- integers: wrapping, shifts by 0 .. 31 ---- */

static inline int32_t fa_scalar_wrap(uint32_t x) {
  int32_t y;
  memcpy(&y, &x, sizeof y);
  return y;
}

static inline int32_t fa_scalar_divide(int32_t a, int32_t b) {
  if (b == 0) return 0;
  return b == -1 ? fa_scalar_wrap(0u - (uint32_t)a) : a / b;
}

static inline int32_t fa_scalar_remainder(int32_t a, int32_t b) {
  return b == 0 || b == -1 ? 0 : a % b;
}

/* Python's // and %. */
static inline int32_t fa_scalar_floordiv(int32_t a, int32_t b) {
  const int32_t rest = fa_scalar_remainder(a, b), q = fa_scalar_divide(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? q - 1 : q;
}

static inline int32_t fa_scalar_floormod(int32_t a, int32_t b) {
  const int32_t rest = fa_scalar_remainder(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline int32_t fa_scalar_int_binary(fa_expr_op op, int32_t a, int32_t b) {
  switch (op) {
  case FA_EXPR_ADD:
    return fa_scalar_wrap((uint32_t)a + (uint32_t)b);
  case FA_EXPR_SUB:
    return fa_scalar_wrap((uint32_t)a - (uint32_t)b);
  case FA_EXPR_MUL:
    return fa_scalar_wrap((uint32_t)a * (uint32_t)b);
  case FA_EXPR_DIV:
    return fa_scalar_divide(a, b);
  case FA_EXPR_REM:
    return fa_scalar_remainder(a, b);
  case FA_EXPR_MIN:
    return a < b ? a : b;
  case FA_EXPR_MAX:
    return a > b ? a : b;
  case FA_EXPR_FLOORDIV:
    return fa_scalar_floordiv(a, b);
  case FA_EXPR_FLOORMOD:
    return fa_scalar_floormod(a, b);
  case FA_EXPR_SHL:
    return fa_scalar_wrap((uint32_t)a << (b & 31));
  case FA_EXPR_SHR:
    return a >> (b & 31);
  case FA_EXPR_BITAND:
    return a & b;
  case FA_EXPR_BITXOR:
    return a ^ b;
  case FA_EXPR_BITOR:
    return a | b;
  case FA_EXPR_AND:
    return a && b;
  case FA_EXPR_OR:
    return a || b;
  default:
    return fa_scalar_compare(op, (a < b), (a == b), (a > b));
  }
}

/* ---- floats ---- */

/* The nearest int towards 0 that there is; NaN gives 0. */
static inline int32_t fa_scalar_truncate(float x) {
  if (x >= 2147483648.0f) return INT32_MAX;
  if (x <= -2147483648.0f) return INT32_MIN;
  return x == x ? (int32_t)x : 0;
}

static inline float fa_scalar_float_binary(fa_expr_op op, float a, float b) {
  switch (op) {
  case FA_EXPR_ADD:
    return a + b;
  case FA_EXPR_SUB:
    return a - b;
  case FA_EXPR_MUL:
    return a * b;
  case FA_EXPR_DIV:
    return a / b;
  case FA_EXPR_POW:
    return powf(a, b);
  case FA_EXPR_MIN:
    return fminf(a, b);
  default:
    return fmaxf(a, b);
  }
}

static inline float fa_scalar_float_unary(fa_expr_op op, float a) {
  switch (op) {
  case FA_EXPR_NEG:
    return -a;
  case FA_EXPR_ABS:
    return fabsf(a);
  case FA_EXPR_EXP:
    return expf(a);
  case FA_EXPR_LOG:
    return logf(a);
  case FA_EXPR_SQRT:
    return sqrtf(a);
  case FA_EXPR_TANH:
    return tanhf(a);
  case FA_EXPR_SIN:
    return sinf(a);
  case FA_EXPR_COS:
    return cosf(a);
  case FA_EXPR_CEIL:
    return ceilf(a);
  case FA_EXPR_ERF:
    return erff(a);
  case FA_EXPR_SIGMOID:
    return 1.0f / (1.0f + expf(-a));
  case FA_EXPR_AS_FLOAT:
    return a;
  default:
    return floorf(a);
  }
}

/* ---- nodes ---- */

/* Clamps an index to 0 .. n - 1. */
static inline int32_t fa_scalar_index(int32_t x, int64_t n) {
  return x < 0 ? 0 : x >= n ? (int32_t)(n - 1) : x;
}

static inline int32_t fa_scalar_int_unary(fa_expr_op op, int32_t a) {
  if (op == FA_EXPR_BITNOT) return ~a;
  return (op == FA_EXPR_ABS && a >= 0) || op == FA_EXPR_AS_INT ? a : fa_scalar_wrap(0u - (uint32_t)a);
}

/* An operation of one argument; floats: it is a float. */
static inline fa_f32_word fa_scalar_unary(fa_expr_op op, bool floats, fa_f32_word a) {
  switch (op) {
  case FA_EXPR_TO_BOOL:
    return (fa_f32_word){.i = a.i != 0};
  case FA_EXPR_TO_INT:
    return a;
  case FA_EXPR_TO_FLOAT:
    return (fa_f32_word){.f = (float)a.i};
  case FA_EXPR_NOT:
    return (fa_f32_word){.i = !a.i};
  default:
    break;
  }
  if (!floats) return (fa_f32_word){.i = fa_scalar_int_unary(op, a.i)};
  if (op == FA_EXPR_AS_INT) return (fa_f32_word){.i = fa_scalar_truncate(a.f)};
  return (fa_f32_word){.f = fa_scalar_float_unary(op, a.f)};
}

/* An operation of two arguments; floats: they are floats. */
static inline fa_f32_word fa_scalar_binary(fa_expr_op op, fa_expr_type type, bool floats, fa_f32_word a,
                                           fa_f32_word b) {
  if (!floats) return (fa_f32_word){.i = fa_scalar_int_binary(op, a.i, b.i)};
  if (type == FA_EXPR_BOOL)
    return (fa_f32_word){.i = fa_scalar_compare(op, (a.f < b.f), (a.f == b.f), (a.f > b.f))};
  return (fa_f32_word){.f = fa_scalar_float_binary(op, a.f, b.f)};
}

#endif
