/* The arithmetic of mma.h: one output exactly, in integers, and whole tiles fast, in float vectors. */
#include "gpu/simt/mma.h"

#include <string.h>

/* ---- one output, exactly ---- */

typedef struct operand {
  bool negative, nan, inf;
  int exponent;         /* of the significand's leading position */
  uint64_t significand; /* in units of 2^(exponent - fraction bits) */
} operand;

static operand unpack(uint32_t bits, int exponent_bits, int fraction_bits) {
  const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
  const int field = (int)(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
  operand x = {.negative = bits >> (exponent_bits + fraction_bits) & 1};
  x.nan = field == top && fraction != 0;
  x.inf = field == top && fraction == 0;
  x.exponent = (field ? field : 1) - bias;
  x.significand = fraction | (field ? 1u << fraction_bits : 0);
  return x;
}

static float from_bits(uint32_t u) {
  float x;
  memcpy(&x, &u, 4);
  return x;
}
static uint32_t to_bits(float x) {
  uint32_t u;
  memcpy(&u, &x, 4);
  return u;
}

/* sum * 2^unit toward zero, to so many fraction bits; unit >= -151. */
static float truncate_to_f32(int64_t sum, int unit, int kept) {
  if (sum == 0) return 0.0f;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  uint64_t m = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  int top = 63 - __builtin_clzll(m); /* leading bit has weight 2^(top + unit) */
  int drop = top - kept;
  if (unit + drop < -149) drop = -149 - unit; /* subnormal spacing */
  if (drop > 0)
    m = drop > 63 ? 0 : m >> drop;
  else
    m <<= -drop;
  if (m == 0) return from_bits(sign);
  m <<= 23 - kept;
  int exponent = unit + drop - (23 - kept); /* m has at most 24 bits, value m * 2^exponent */
  if (exponent < -149) {                    /* a subnormal number, whose lowest bits are zeros */
    m >>= -149 - exponent;
    exponent = -149;
  }
  if (m < 1u << 23) return from_bits(sign | (uint32_t)m);
  if (exponent + 23 > 127) return from_bits(sign | 0x7f800000u);
  return from_bits(sign | (uint32_t)(exponent + 23 + 127) << 23 | ((uint32_t)m & 0x7fffffu));
}

/* significand * 2^shift toward zero. */
static int64_t align(uint64_t significand, int shift, bool negative) {
  const uint64_t m = shift >= 0 ? significand << shift : shift <= -64 ? 0 : significand >> -shift;
  return negative ? -(int64_t)m : (int64_t)m;
}

/* What the elements are, and how many fraction bits addends and the sum keep. finite: as e4m3, whose only NaN has all bits
 * set and whose largest exponent is a number's. */
typedef struct unit {
  int exponent_bits, fraction_bits;
  bool finite;
  int extra, kept;
} unit;
static const unit f16_unit = {5, 10, false, 25, 23}, bf16_unit = {8, 7, false, 25, 23},
                  tf32_unit = {8, 10, false, 25, 23}, e4m3_unit = {4, 3, true, 13, 13},
                  e5m2_unit = {5, 2, false, 13, 13};

static operand element(uint32_t bits, const unit *u) {
  operand x = unpack(bits, u->exponent_bits, u->fraction_bits);
  const uint32_t top = (1u << u->exponent_bits) - 1, last = (1u << u->fraction_bits) - 1;
  if (!u->finite || (bits >> u->fraction_bits & top) != top) return x;
  x.nan = (bits & last) == last;
  x.inf = false;
  return x;
}

/* a and b: n raw patterns each. */
static float dot(const uint32_t *a, const uint32_t *b, int n, float c, const unit *u) {
  enum { MOST = 32 };
  operand x[MOST], y[MOST];
  const operand z = unpack(to_bits(c), 8, 23);
  bool nan = z.nan, plus = z.inf && !z.negative, minus = z.inf && z.negative;
  int top = -126;
  if (z.significand && z.exponent > top) top = z.exponent;
  for (int k = 0; k < n; ++k) {
    x[k] = element(a[k], u);
    y[k] = element(b[k], u);
    const bool inf = x[k].inf || y[k].inf, negative = x[k].negative != y[k].negative;
    nan |= x[k].nan || y[k].nan || (x[k].inf && y[k].significand == 0) || (y[k].inf && x[k].significand == 0);
    plus |= inf && !negative;
    minus |= inf && negative;
    if (x[k].significand && y[k].significand && x[k].exponent + y[k].exponent > top)
      top = x[k].exponent + y[k].exponent;
  }
  if (nan || (plus && minus)) return from_bits(0x7fffffffu);
  if (plus || minus) return from_bits(plus ? 0x7f800000u : 0xff800000u);
  int64_t sum = align(z.significand, z.exponent - top + u->extra - 23, z.negative);
  for (int k = 0; k < n; ++k)
    sum += align(x[k].significand * y[k].significand,
                 x[k].exponent + y[k].exponent - top + u->extra - 2 * u->fraction_bits,
                 x[k].negative != y[k].negative);
  return truncate_to_f32(sum, top - u->extra, u->kept);
}

float fa_mma_dot16(const uint16_t *a, const uint16_t *b, float c, bool bf16) {
  uint32_t x[16], y[16];
  for (int k = 0; k < 16; ++k) {
    x[k] = a[k];
    y[k] = b[k];
  }
  return dot(x, y, 16, c, bf16 ? &bf16_unit : &f16_unit);
}

float fa_mma_dot8_tf32(const uint32_t *a, const uint32_t *b, float c) {
  uint32_t x[8], y[8];
  for (int k = 0; k < 8; ++k) {
    x[k] = a[k] >> 13;
    y[k] = b[k] >> 13;
  }
  return dot(x, y, 8, c, &tf32_unit);
}

float fa_mma_dot32(const uint8_t *a, const uint8_t *b, float c, bool e5m2) {
  uint32_t x[32], y[32];
  for (int k = 0; k < 32; ++k) {
    x[k] = a[k];
    y[k] = b[k];
  }
  return dot(x, y, 32, c, e5m2 ? &e5m2_unit : &e4m3_unit);
}

/* ---- the whole tile, in float vectors ---- */

/* Exponents of zeros, and of Inf and NaN: combined with any exponent of the other factor they are below, or
 * above, all others. */
enum { NOTHING = -0x1000, ENDLESS = 0x3000 };

typedef struct operands {
  float a[16][16], b[16][8]; /* as in fa_mma_tile: [k] */
  int16_t a_exponent[16][16], b_exponent[16][8];
} __attribute__((aligned(64))) operands;

#define W 8
#define TILE(name) name##_plain
#define TARGET
#if defined(__x86_64__)
#include <immintrin.h>
#define MOST(x, y) (vh_plain) _mm_max_epi16((__m128i)(x), (__m128i)(y))
#else
#define MOST(x, y) (((x) & ((x) > (y))) | ((y) & ~((x) > (y))))
#endif
#include "gpu/simt/mma_tile.h"

#if defined(__x86_64__)
#define W 8
#define TILE(name) name##_avx2
#define TARGET __attribute__((target("avx2")))
#define MOST(x, y) (vh_avx2) _mm_max_epi16((__m128i)(x), (__m128i)(y))
#include "gpu/simt/mma_tile.h"

#define W 16
#define TILE(name) name##_avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define MOST(x, y) (vh_avx512) _mm256_max_epi16((__m256i)(x), (__m256i)(y))
#include "gpu/simt/mma_tile.h"
#endif

typedef struct runners {
  bool (*f16)(fa_mma_tile *, bool, int32_t (*)[16]);
  bool (*tf32)(fa_mma_tile *, int32_t (*)[16]);
} runners;

static const runners *choose(void) {
  static const runners plain = {run16_plain, run32_plain};
#if defined(__x86_64__)
  static const runners avx2 = {run16_avx2, run32_avx2}, avx512 = {run16_avx512, run32_avx512};
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    return &avx512;
  if (__builtin_cpu_supports("avx2")) return &avx2;
#endif
  return &plain;
}

static const runners *chosen(void) {
  static const runners *run;
  if (!run) run = choose(); /* every thread would store the same value */
  return run;
}

void fa_mma_tile_run(fa_mma_tile *t, bool bf16) {
  int32_t odd[8][16];
  if (!chosen()->f16(t, bf16, odd)) return;
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 16; ++i) {
      if (!odd[j][i]) continue;
      uint16_t row[16], column[16];
      for (int k = 0; k < 16; ++k) {
        row[k] = t->a[k][i];
        column[k] = t->b[k][j];
      }
      t->d[j][i] = fa_mma_dot16(row, column, t->c[j][i], bf16);
    }
  }
}

void fa_mma_tile_run_tf32(fa_mma_tile *t) {
  int32_t odd[8][16];
  if (!chosen()->tf32(t, odd)) return;
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 16; ++i) {
      if (!odd[j][i]) continue;
      uint32_t row[8], column[8];
      for (int k = 0; k < 8; ++k) {
        row[k] = t->a_tf32[k][i];
        column[k] = t->b_tf32[k][j];
      }
      t->d[j][i] = fa_mma_dot8_tf32(row, column, t->c[j][i]);
    }
  }
}

/* ---- matrices in row-major order ---- */

static void accumulator_in(fa_mma_tile *t, float d[16][8]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) t->c[j][i] = d[i][j];
}
static void accumulator_out(const fa_mma_tile *t, float d[16][8]) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) d[i][j] = t->d[j][i];
}

void fa_mma_m16n8k16(float d[16][8], const uint16_t a[16][16], const uint16_t b[16][8], bool bf16) {
  fa_mma_tile t;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) t.a[k][i] = a[i][k];
  memcpy(t.b, b, sizeof t.b);
  accumulator_in(&t, d);
  fa_mma_tile_run(&t, bf16);
  accumulator_out(&t, d);
}

void fa_mma_m16n8k8_tf32(float d[16][8], const uint32_t a[16][8], const uint32_t b[8][8]) {
  fa_mma_tile t;
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 8; ++k) t.a_tf32[k][i] = a[i][k];
  memcpy(t.b_tf32, b, sizeof t.b_tf32);
  accumulator_in(&t, d);
  fa_mma_tile_run_tf32(&t);
  accumulator_out(&t, d);
}
