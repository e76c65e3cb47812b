/* The tensor-core model against an independent one (in long double, which holds every aligned addend
 * exactly), and against results of an H100. */
#include "cases/base/dtype.h"
#include "cases/base/rng.h"
#include "gpu/simt/mma.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double value(uint16_t bits, bool bf16) {
  return bf16 ? fa_bf16_to_f32(bits) : fa_f16_to_f32(bits);
}

static int exponent(double x, int smallest) {
  const int e = ilogb(x);
  return e < smallest ? smallest : e;
}

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

/* Finite operands. Addends are multiples of 2^(top - 25) below 2^(top + 2): 64 bits hold their sum. */
static float slow_dot(const uint16_t *a, const uint16_t *b, float c, bool bf16) {
  const int smallest = bf16 ? -126 : -14;
  int top = -126;
  if (c != 0 && exponent(c, -126) > top) top = exponent(c, -126);
  for (int k = 0; k < 16; ++k) {
    const double x = value(a[k], bf16), y = value(b[k], bf16);
    if (x == 0 || y == 0) continue;
    const int e = exponent(x, smallest) + exponent(y, smallest);
    if (e > top) top = e;
  }
  long double sum = truncl(ldexpl(c, 25 - top));
  for (int k = 0; k < 16; ++k)
    sum += truncl(ldexpl((long double)value(a[k], bf16) * value(b[k], bf16), 25 - top));
  if (sum == 0) return 0.0f;
  int unit = ilogbl(sum) - 23;                          /* of the last place of an f32 of this size ... */
  if (unit + top - 25 < -149) unit = -149 - (top - 25); /* ... or of a subnormal one */
  const long double cut = ldexpl(truncl(ldexpl(sum, -unit)), unit + top - 25);
  return fabsl(cut) >= 0x1p128L ? copysignf(INFINITY, (float)(cut > 0 ? 1 : -1)) : (float)cut;
}

typedef struct operands {
  uint16_t a[16][16], b[16][8];
  float d[16][8];
} operands;

enum { NARROW, WIDE, TINY, HUGE_VALUES, SPARSE, BITS, N_KINDS };

static uint16_t draw(fa_rng *r, bool bf16, int kind) {
  double x = 2 * fa_rng_next_uniform(r) - 1;
  if (kind == BITS) {
    uint16_t u;
    do u = (uint16_t)fa_rng_next(r);
    while (!isfinite(value(u, bf16)));
    return u;
  }
  if (kind == SPARSE && fa_rng_chance(r, 0.7)) return fa_rng_chance(r, 0.5) ? 0x8000 : 0;
  if (kind == WIDE) x = ldexp(x, (int)fa_rng_range(r, -20, 15));
  if (kind == TINY) x = ldexp(x, bf16 ? -62 - (int)fa_rng_below(r, 70) : -14 - (int)fa_rng_below(r, 11));
  if (kind == HUGE_VALUES) x = ldexp(x, bf16 ? 50 + (int)fa_rng_below(r, 14) : 15);
  return bf16 ? fa_f64_to_bf16(x) : fa_f64_to_f16(x);
}

static void draw_all(operands *o, fa_rng *r, bool bf16, int kind) {
  const int c_kind = (int)fa_rng_below(r, 4);
  for (int k = 0; k < 16; ++k) {
    for (int i = 0; i < 16; ++i) o->a[i][k] = draw(r, bf16, kind);
    for (int j = 0; j < 8; ++j) o->b[k][j] = draw(r, bf16, kind);
  }
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float c = c_kind == 0 ? 0 : (float)(8 * fa_rng_next_uniform(r) - 4);
      if (c_kind == 2) c = ldexpf(c, (int)fa_rng_range(r, -140, 120));
      if (c_kind == 3 && fa_rng_chance(r, 0.3)) c = -0.0f;
      o->d[i][j] = c;
    }
}

/* Fast tile == exact integers == long double, bit for bit. */
static void check_random(void) {
  fa_rng r = fa_rng_make(11, 0);
  operands o, before;
  for (int round = 0; round < 6000; ++round) {
    const bool bf16 = round & 1;
    draw_all(&o, &r, bf16, round / 2 % N_KINDS);
    before = o;
    fa_mma_m16n8k16(o.d, (const uint16_t(*)[16])o.a, (const uint16_t(*)[8])o.b, bf16);
    for (int i = 0; i < 16; ++i)
      for (int j = 0; j < 8; ++j) {
        uint16_t column[16];
        for (int k = 0; k < 16; ++k) column[k] = o.b[k][j];
        const float exact = fa_mma_dot16(o.a[i], column, before.d[i][j], bf16);
        if (bits_of(o.d[i][j]) != bits_of(exact) && !(o.d[i][j] == 0 && exact == 0))
          CHECK_MSG(false, "round %d [%d][%d]: fast %a exact %a", round, i, j, o.d[i][j], exact);
        if (round >= 1500) continue;
        const float slow = slow_dot(o.a[i], column, before.d[i][j], bf16);
        CHECK_MSG(slow == exact, "round %d [%d][%d]: exact %a slow %a", round, i, j, exact, slow);
      }
  }
}

/* a_k b_k = products[k], each a power of two split between the operands, on an accumulator c. */
static float probe(const double *products, float c, bool bf16) {
  operands o;
  memset(&o, 0, sizeof o);
  for (int k = 0; k < 16; ++k) {
    if (products[k] == 0) continue;
    const int e = ilogb(fabs(products[k])) / 2;
    const double x = ldexp(1, e), y = products[k] / x;
    o.a[3][k] = bf16 ? fa_f64_to_bf16(x) : fa_f64_to_f16(x);
    o.b[k][5] = bf16 ? fa_f64_to_bf16(y) : fa_f64_to_f16(y);
  }
  o.d[3][5] = c;
  fa_mma_m16n8k16(o.d, (const uint16_t(*)[16])o.a, (const uint16_t(*)[8])o.b, bf16);
  return o.d[3][5];
}

static void check_hardware(bool bf16) {
  double x[16];
  for (int k = 0; k < 16; ++k) x[k] = 0x1p-25;
  CHECK(probe(x, 1.0f, bf16) == 1.0f + 0x1p-21f);
  for (int k = 0; k < 16; ++k) x[k] = 0x1p-26;
  CHECK(probe(x, 1.0f, bf16) == 1.0f);
  memset(x, 0, sizeof x);
  x[0] = 1, x[7] = 0x1p-24, x[9] = 0x1p-25;
  CHECK(probe(x, 0.0f, bf16) == 1.0f); /* 1 + 1.5 * 2^-24 */
  x[0] = 1, x[7] = -0x1p-25, x[9] = 0;
  CHECK(probe(x, 0.0f, bf16) == 1.0f - 0x1p-24f);
  for (int where = 0; where < 16; ++where) {
    memset(x, 0, sizeof x);
    x[where] = 1, x[(where + 1) % 16] = 0x1p30, x[(where + 9) % 16] = -0x1p30;
    CHECK(probe(x, 0.0f, bf16) == 0.0f);
  }
  memset(x, 0, sizeof x);
  x[2] = 0x1p30, x[12] = -0x1p30;
  CHECK(probe(x, 1.0f, bf16) == 0.0f);
}

static void check_special(bool bf16) {
  const uint16_t one = bf16 ? 0x3f80 : 0x3c00, inf = bf16 ? 0x7f80 : 0x7c00, nan = inf | 1;
  operands o;
  for (int what = 0; what < 5; ++what) {
    memset(&o, 0, sizeof o);
    for (int k = 0; k < 16; ++k) o.a[2][k] = o.b[k][4] = one;
    if (what == 0) o.a[2][3] = nan;
    if (what == 1) o.a[2][3] = inf, o.b[3][4] = 0;
    if (what == 2) o.a[2][3] = inf, o.a[2][4] = inf | 0x8000;
    if (what == 3) o.a[2][3] = inf;
    if (what == 4) o.a[2][3] = inf | 0x8000, o.d[2][4] = -INFINITY;
    fa_mma_m16n8k16(o.d, (const uint16_t(*)[16])o.a, (const uint16_t(*)[8])o.b, bf16);
    if (what < 3) CHECK_MSG(bits_of(o.d[2][4]) == 0x7fffffff, "what %d: %a", what, o.d[2][4]);
    if (what == 3) CHECK(o.d[2][4] == INFINITY);
    if (what == 4) CHECK(o.d[2][4] == -INFINITY);
    if (what == 0) CHECK(o.d[3][4] == 0 && o.d[1][1] == 0);
  }
}

/* The fast tf32 tile against one output at a time; the low 13 bits of operands must have no effect. */
static void test_tf32_tile(void) {
  fa_rng r = fa_rng_make(7, 0);
  for (int trial = 0; trial < 3000; ++trial) {
    uint32_t a[16][8], b[8][8];
    float d[16][8], got[16][8];
    const int spread = trial % 3 == 0 ? 4 : trial % 3 == 1 ? 40 : 250;
    for (int i = 0; i < 16 * 8; ++i) {
      uint32_t x = (uint32_t)fa_rng_next(&r), y = (uint32_t)fa_rng_next(&r), z = (uint32_t)fa_rng_next(&r);
      const uint32_t low = 127 - (uint32_t)spread / 2;
      a[i / 8][i % 8] = x % 7 == 0 ? 0 : (x & 0x807fffffu) | (low + x / 64 % (uint32_t)spread) << 23;
      if (i < 64)
        b[i / 8][i % 8] = y % 7 == 0 ? 0 : (y & 0x807fffffu) | (low + y / 64 % (uint32_t)spread) << 23;
      z = (z & 0x807fffffu) | (low + z / 64 % (uint32_t)spread) << 23;
      memcpy(&d[i / 8][i % 8], &z, 4);
    }
    memcpy(got, d, sizeof got);
    fa_mma_m16n8k8_tf32(got, (const uint32_t(*)[8])a, (const uint32_t(*)[8])b);
    for (int i = 0; i < 16; ++i) {
      for (int j = 0; j < 8; ++j) {
        uint32_t column[8], noisy[8];
        for (int k = 0; k < 8; ++k) {
          column[k] = b[k][j];
          noisy[k] = a[i][k] ^ (uint32_t)(trial & 0x1fff);
        }
        CHECK(bits_of(got[i][j]) == bits_of(fa_mma_dot8_tf32(noisy, column, d[i][j])));
      }
    }
  }
}

static double value_8(uint8_t bits, bool e5m2) {
  return e5m2 ? (double)fa_e5m2_to_f32(bits) : (double)fa_e4m3_to_f32(bits);
}

/* 32 products and the accumulator, in long double: cut to 13 fraction bits of the largest, and so is the sum. */
static float slow_dot32(const uint8_t *a, const uint8_t *b, float c, bool e5m2) {
  const int smallest = e5m2 ? -14 : -6;
  int top = -126;
  if (c != 0 && exponent(c, -126) > top) top = exponent(c, -126);
  for (int k = 0; k < 32; ++k) {
    const double x = value_8(a[k], e5m2), y = value_8(b[k], e5m2);
    if (x == 0 || y == 0) continue;
    const int e = exponent(x, smallest) + exponent(y, smallest);
    if (e > top) top = e;
  }
  long double sum = truncl(ldexpl(c, 13 - top));
  for (int k = 0; k < 32; ++k)
    sum += truncl(ldexpl((long double)value_8(a[k], e5m2) * value_8(b[k], e5m2), 13 - top));
  if (sum == 0) return 0.0f;
  const int unit = ilogbl(sum) - 13;
  return (float)ldexpl(truncl(ldexpl(sum, -unit)), unit + top - 13);
}

/* Every byte that is a number, dense and sparse; and NaN, which one operand suffices for. */
static void check_eight_bits(void) {
  fa_rng r = fa_rng_make(12, 0);
  for (int round = 0; round < 40000; ++round) {
    const bool e5m2 = round & 1, sparse = round & 2;
    uint8_t a[32], b[32];
    for (int k = 0; k < 32; ++k) {
      do
        a[k] = (uint8_t)fa_rng_next(&r),
        b[k] = sparse && fa_rng_chance(&r, 0.6) ? 0 : (uint8_t)fa_rng_next(&r);
      while (!isfinite(value_8(a[k], e5m2)) || !isfinite(value_8(b[k], e5m2)));
    }
    const float c =
        round % 5 == 0 ? 0 : ldexpf((float)(fa_rng_next_uniform(&r) - 0.5), (int)fa_rng_range(&r, -20, 25));
    const float got = fa_mma_dot32(a, b, c, e5m2), want = slow_dot32(a, b, c, e5m2);
    CHECK_MSG(got == want, "round %d: %a, must be %a", round, (double)got, (double)want);
    a[round % 32] = 0x7f;
    CHECK(isnan(fa_mma_dot32(a, b, c, e5m2)));
  }
}

/* Whole tiles of every byte, NaN rarely, with accumulators of all sizes, infinite ones too. */
static void check_eight_bit_tiles(void) {
  fa_rng r = fa_rng_make(13, 0);
  for (int round = 0; round < 400; ++round) {
    fa_mma_tile t;
    const bool nan = round % 8 == 0, sparse = round % 3 == 0;
    uint8_t *const v[2] = {t.a_eight[0], t.b_eight[0]};
    for (int x = 0; x < 2; ++x)
      for (int i = 0; i < 32 * (x ? 8 : 16); ++i) {
        do v[x][i] = sparse && fa_rng_chance(&r, 0.9) ? 0 : (uint8_t)fa_rng_next(&r);
        while (!nan && isnan(value_8(v[x][i], false)));
      }
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 16; ++i)
        t.c[j][i] =
            round % 5 == 0 ? 0
            : round == 7
                ? INFINITY
                : ldexpf((float)(fa_rng_next_uniform(&r) - 0.5),
                         (int)fa_rng_range(&r, round % 7 == 0 ? -149 : -20, round % 7 == 0 ? 128 : 25));
    fa_mma_tile_run_e4m3(&t);
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 16; ++i) {
        uint8_t a[32], b[32];
        for (int k = 0; k < 32; ++k) {
          a[k] = t.a_eight[k][i];
          b[k] = t.b_eight[k][j];
        }
        const float want = fa_mma_dot32(a, b, t.c[j][i], false);
        CHECK_MSG(bits_of(t.d[j][i]) == bits_of(want), "round %d: %a, must be %a", round, (double)t.d[j][i],
                  (double)want);
      }
  }
}

int main(void) {
  check_eight_bits();
  check_eight_bit_tiles();
  test_tf32_tile();
  for (int bf16 = 0; bf16 < 2; ++bf16) {
    check_hardware(bf16);
    check_special(bf16);
  }
  check_random();
  return check_done();
}
