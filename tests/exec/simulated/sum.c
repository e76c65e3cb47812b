#include "tests/exec/simulated/sum.h"

#include <math.h>

sim_unit sim_unit_of(const sim_config *c, sim_product which) {
  return (sim_unit){.sum = (sim_sum)c->sum[which],
                    .block = c->block,
                    .extra_bits = c->extra_bits,
                    .three = c->operand[which] == SIM_3XTF32};
}

static float sum_lanes(int64_t n, const float *a, const float *b, float start) {
  float lane[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int l = 0; l < 8; ++l) lane[l] += a[i + l] * b[i + l];
  for (int l = 0; i < n; ++i, ++l) lane[l] += a[i] * b[i];
  return start + (((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7])));
}

static float sum_sequential(int64_t n, const float *a, const float *b, float start) {
  for (int64_t i = 0; i < n; ++i) start += a[i] * b[i];
  return start;
}

static float sum_pairwise(int64_t n, const float *a, const float *b) {
  if (n <= 2) return n == 0 ? 0.0f : n == 1 ? a[0] * b[0] : a[0] * b[0] + a[1] * b[1];
  const int64_t half = n / 2;
  return sum_pairwise(half, a, b) + sum_pairwise(n - half, a + half, b + half);
}

typedef union wide {
  double f;
  uint64_t u;
} wide;

static double cut(double x, double inverse, double step) {
  return trunc(x * inverse) * step;
}

static int exponent_of(double x) {
  return (int)((wide){.f = x}.u >> 52 & 2047) - 1023;
}

/* One block of a matrix unit: products and accumulator are aligned to the largest of them, cut to 23 + extra
 * fraction bits, added exactly, and the sum is cut to `kept` fraction bits. By factors: a product's exponent is the sum of
 * its factors', whatever their significands make of it. */
static float add_block(int64_t n, const float *a, const float *b, float start, int extra, int kept,
                       bool by_factors) {
  double product[64], largest = fabs((double)start);
  int exponent = largest > 0.0 ? exponent_of(largest) : -1022;
  for (int64_t i = 0; i < n; ++i) {
    product[i] = (double)a[i] * b[i];
    largest = fmax(largest, fabs(product[i]));
    if (product[i] == 0.0) continue;
    const int e = by_factors ? exponent_of(a[i]) + exponent_of(b[i]) : exponent_of(product[i]);
    if (e > exponent) exponent = e;
  }
  if (!(largest > 0.0) || !isfinite(largest)) return start + (largest > 0.0 ? NAN : 0.0f);
  const double step = ldexp(1.0, exponent - 23 - extra), inverse = 1.0 / step;
  double sum = cut(start, inverse, step);
  for (int64_t i = 0; i < n; ++i) sum += cut(product[i], inverse, step);
  wide w = {.f = sum};
  w.u &= ~((UINT64_C(1) << (52 - kept)) - 1);
  return (float)w.f;
}

static float sum_blocks(const sim_unit *u, int64_t n, const float *a, const float *b, float start) {
  const int kept = u->sum == SIM_NARROW ? 23 + u->extra_bits : 23;
  const int64_t block = u->block < 64 ? u->block : 64;
  for (int64_t i = 0; i < n; i += block)
    start = add_block(n - i < block ? n - i : block, a + i, b + i, start, u->extra_bits, kept,
                      u->sum == SIM_NARROW);
  return start;
}

static float sum_rounded(const sim_unit *u, int64_t n, const float *a, const float *b, float start) {
  const sim_format f = u->sum == SIM_SUM_F16 ? SIM_F16 : SIM_BF16;
  for (int64_t i = 0; i < n; i += u->block) {
    double sum = start;
    for (int64_t k = i; k < n && k < i + u->block; ++k) sum += (double)a[k] * b[k];
    start = sim_round((float)sum, f, false);
  }
  return start;
}

static float sum_once(const sim_unit *u, int64_t n, const float *a, const float *b, float start) {
  switch (u->sum) {
  case SIM_LANES:
    return sum_lanes(n, a, b, start);
  case SIM_SEQUENTIAL:
    return sum_sequential(n, a, b, start);
  case SIM_PAIRWISE:
    return start + sum_pairwise(n, a, b);
  case SIM_MMA:
  case SIM_NARROW:
    return sum_blocks(u, n, a, b, start);
  default:
    return sum_rounded(u, n, a, b, start);
  }
}

enum { PART = 32 };

/* The small products first, as such kernels have it. */
static float sum_three(const sim_unit *u, int64_t n, const float *a, const float *b, float start) {
  float high_a[PART], low_a[PART], high_b[PART], low_b[PART];
  for (int64_t at = 0; at < n; at += PART) {
    const int64_t m = n - at < PART ? n - at : PART;
    for (int64_t i = 0; i < m; ++i) {
      high_a[i] = sim_round(a[at + i], SIM_TF32, false);
      high_b[i] = sim_round(b[at + i], SIM_TF32, false);
      low_a[i] = sim_round(a[at + i] - high_a[i], SIM_TF32, false);
      low_b[i] = sim_round(b[at + i] - high_b[i], SIM_TF32, false);
    }
    start = sum_once(u, m, low_a, high_b, start);
    start = sum_once(u, m, high_a, low_b, start);
    start = sum_once(u, m, high_a, high_b, start);
  }
  return start;
}

float sim_dot(const sim_unit *u, int64_t n, const float *a, const float *b, float start) {
  return u->three ? sum_three(u, n, a, b, start) : sum_once(u, n, a, b, start);
}
