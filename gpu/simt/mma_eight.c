/* A tile of wgmma with e4m3 inputs (mma.h, fa_mma_dot32) in integers of 32 bits, which a compiler makes vectors of. */
#include "gpu/simt/mma.h"

#include <string.h>

enum { DEPTH = 32, ROWS = 16, COLUMNS = 8, KEPT = 13, NOTHING = -4096 };

/* Elements of one operand. A product of two has 6 fraction bits and at most 225 units. */
typedef struct element {
  int32_t significand,
      exponent; /* with the sign, in units of 2^(exponent - 3); exponent of a zero: NOTHING */
} element;

static element element_of(uint8_t bits) {
  const int32_t field = bits >> 3 & 15, fraction = bits & 7, m = fraction | (field ? 8 : 0);
  return (element){bits & 0x80 ? -m : m, m == 0 ? NOTHING : (field ? field : 1) - 7};
}

static bool is_nan(uint8_t bits) {
  return (bits & 0x7f) == 0x7f;
}

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}
static float of_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}

/* sum * 2^(top - KEPT) toward zero, to KEPT fraction bits; top >= -126. */
static float cut(int32_t sum, int32_t top) {
  if (sum == 0) return 0.0f;
  const uint32_t size = (uint32_t)(sum < 0 ? -sum : sum);
  const int drop = 31 - __builtin_clz(size) - KEPT, unit = top - KEPT;
  const int32_t kept = (int32_t)(drop > 0 ? size >> drop << drop : size);
  const float one = of_bits(unit >= -126 ? (uint32_t)(unit + 127) << 23 : 1u << (unit + 149));
  return (float)(sum < 0 ? -kept : kept) * one;
}

/* The accumulator as what is added to the products: 23 fraction bits become KEPT of the largest exponent. */
typedef struct accumulator {
  int32_t significand[ROWS], exponent[ROWS];
} accumulator;

static void accumulator_of(const float c[ROWS], accumulator *z) {
  for (int i = 0; i < ROWS; ++i) {
    const uint32_t u = bits_of(c[i]), field = u >> 23 & 255, m = (u & 0x7fffff) | (field ? 1u << 23 : 0);
    z->significand[i] = u >> 31 ? -(int32_t)m : (int32_t)m;
    z->exponent[i] = m == 0 ? NOTHING : (int32_t)(field ? field : 1) - 127;
  }
}

static inline int32_t shifted(int32_t x, int32_t by) {
  const int32_t n = by > 31 ? 31 : by;
  return x < 0 ? -(-x >> n) : x >> n;
}

/* A column of d: a's rows by one column of b. */
static void run_column(const element a[DEPTH][ROWS], const element *b, const float c[ROWS], float d[ROWS]) {
  int32_t top[ROWS], sum[ROWS];
  accumulator z;
  accumulator_of(c, &z);
  for (int i = 0; i < ROWS; ++i) top[i] = z.exponent[i] > -126 ? z.exponent[i] : -126;
  for (int k = 0; k < DEPTH; ++k)
    for (int i = 0; i < ROWS; ++i) {
      const int32_t e = a[k][i].exponent + b[k].exponent;
      top[i] = e > top[i] ? e : top[i];
    }
  for (int i = 0; i < ROWS; ++i) sum[i] = shifted(z.significand[i], 23 - KEPT + top[i] - z.exponent[i]);
  for (int k = 0; k < DEPTH; ++k)
    for (int i = 0; i < ROWS; ++i)
      sum[i] += shifted(a[k][i].significand * b[k].significand * (1 << (KEPT - 6)),
                        top[i] - a[k][i].exponent - b[k].exponent);
  for (int i = 0; i < ROWS; ++i) d[i] = cut(sum[i], top[i]);
}

/* NaN among the operands, infinity or NaN among the accumulators. */
static bool is_odd(const fa_mma_tile *t) {
  bool odd = false;
  for (int k = 0; k < DEPTH; ++k) {
    for (int i = 0; i < ROWS; ++i) odd |= is_nan(t->a_eight[k][i]);
    for (int j = 0; j < COLUMNS; ++j) odd |= is_nan(t->b_eight[k][j]);
  }
  for (int j = 0; j < COLUMNS; ++j)
    for (int i = 0; i < ROWS; ++i) odd |= (bits_of(t->c[j][i]) >> 23 & 255) == 255;
  return odd;
}

static void run_slowly(fa_mma_tile *t) {
  for (int j = 0; j < COLUMNS; ++j)
    for (int i = 0; i < ROWS; ++i) {
      uint8_t row[DEPTH], column[DEPTH];
      for (int k = 0; k < DEPTH; ++k) {
        row[k] = t->a_eight[k][i];
        column[k] = t->b_eight[k][j];
      }
      t->d[j][i] = fa_mma_dot32(row, column, t->c[j][i], false);
    }
}

void fa_mma_tile_run_e4m3(fa_mma_tile *t) {
  element a[DEPTH][ROWS], b[DEPTH];
  if (is_odd(t)) {
    run_slowly(t);
    return;
  }
  for (int k = 0; k < DEPTH; ++k)
    for (int i = 0; i < ROWS; ++i) a[k][i] = element_of(t->a_eight[k][i]);
  for (int j = 0; j < COLUMNS; ++j) {
    for (int k = 0; k < DEPTH; ++k) b[k] = element_of(t->b_eight[k][j]);
    run_column(a, b, t->c[j], t->d[j]);
  }
}
