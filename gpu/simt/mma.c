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

/* sum * 2^unit toward zero; unit >= -151. */
static float truncate_to_f32(int64_t sum, int unit) {
  if (sum == 0) return 0.0f;
  const uint32_t sign = sum < 0 ? 0x80000000u : 0;
  uint64_t m = sum < 0 ? (uint64_t)-sum : (uint64_t)sum;
  int top = 63 - __builtin_clzll(m); /* leading bit has weight 2^(top + unit) */
  int drop = top - 23;
  if (unit + drop < -149) drop = -149 - unit; /* subnormal spacing */
  if (drop > 0)
    m = drop > 63 ? 0 : m >> drop;
  else
    m <<= -drop;
  if (m == 0) return from_bits(sign);
  const int exponent = unit + drop; /* m has at most 24 bits, value m * 2^exponent */
  if (m < 1u << 23) return from_bits(sign | (uint32_t)m);
  if (exponent + 23 > 127) return from_bits(sign | 0x7f800000u);
  return from_bits(sign | (uint32_t)(exponent + 23 + 127) << 23 | ((uint32_t)m & 0x7fffffu));
}

/* significand * 2^shift toward zero. */
static int64_t align(uint64_t significand, int shift, bool negative) {
  const uint64_t m = shift >= 0 ? significand << shift : shift <= -64 ? 0 : significand >> -shift;
  return negative ? -(int64_t)m : (int64_t)m;
}

/* a and b: n raw patterns each, of elements with such fields. */
static float dot(const uint32_t *a, const uint32_t *b, int n, float c, int exponent_bits, int fraction_bits) {
  enum { EXTRA = 25, MOST = 16 };
  operand x[MOST], y[MOST];
  const operand z = unpack(to_bits(c), 8, 23);
  bool nan = z.nan, plus = z.inf && !z.negative, minus = z.inf && z.negative;
  int top = -126;
  if (z.significand && z.exponent > top) top = z.exponent;
  for (int k = 0; k < n; ++k) {
    x[k] = unpack(a[k], exponent_bits, fraction_bits);
    y[k] = unpack(b[k], exponent_bits, fraction_bits);
    const bool inf = x[k].inf || y[k].inf, negative = x[k].negative != y[k].negative;
    nan |= x[k].nan || y[k].nan || (x[k].inf && y[k].significand == 0) || (y[k].inf && x[k].significand == 0);
    plus |= inf && !negative;
    minus |= inf && negative;
    if (x[k].significand && y[k].significand && x[k].exponent + y[k].exponent > top)
      top = x[k].exponent + y[k].exponent;
  }
  if (nan || (plus && minus)) return from_bits(0x7fffffffu);
  if (plus || minus) return from_bits(plus ? 0x7f800000u : 0xff800000u);
  int64_t sum = align(z.significand, z.exponent - top + EXTRA - 23, z.negative);
  for (int k = 0; k < n; ++k)
    sum += align(x[k].significand * y[k].significand,
                 x[k].exponent + y[k].exponent - top + EXTRA - 2 * fraction_bits,
                 x[k].negative != y[k].negative);
  return truncate_to_f32(sum, top - EXTRA);
}

float fa_mma_dot16(const uint16_t *a, const uint16_t *b, float c, bool bf16) {
  uint32_t x[16], y[16];
  for (int k = 0; k < 16; ++k) {
    x[k] = a[k];
    y[k] = b[k];
  }
  return bf16 ? dot(x, y, 16, c, 8, 7) : dot(x, y, 16, c, 5, 10);
}

float fa_mma_dot8_tf32(const uint32_t *a, const uint32_t *b, float c) {
  uint32_t x[8], y[8];
  for (int k = 0; k < 8; ++k) {
    x[k] = a[k] >> 13;
    y[k] = b[k] >> 13;
  }
  return dot(x, y, 8, c, 8, 10);
}

/* ---- the whole tile, in float vectors ----
 *
 * Where every exponent is moderate, f32 does it exactly: a product of two 11-bit (8-bit) significands fits
 * 24 bits, scaling by 2^(25 - top) is exact or leaves something below 1 that the truncating conversion to
 * int drops, and an addend is then below 2^27, so that eight of them fit an int32. The largest exponent is
 * found as the largest product of the operands' powers of two. */

typedef float v8f __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));
typedef double v8d __attribute__((vector_size(64)));
typedef int64_t v8l __attribute__((vector_size(64)));

typedef struct tile {
  float a[16][16], a_pow[16][16]; /* value, and 2^exponent (0 for 0) */
  float b[16][8], b_pow[16][8];
  float d[16][8];
  bool tiny;       /* some operand is so small that a product of powers could underflow to 0 */
  uint8_t odd[16]; /* per row: bit j = column j needs the exact path */
} tile;

#define TINY_BITS 0x1a800000 /* 2^-74: two of at least this have a product above 2^-149 */
#define LOW_BITS 0x0d800000  /* 2^-100 */
#define HIGH_BITS 0x71800000 /* 2^100 */

__attribute__((always_inline)) static inline void tile_core(tile *t) {
  v8f b[16], b_pow[16];
  memcpy(b, t->b, sizeof b);
  memcpy(b_pow, t->b_pow, sizeof b_pow);
  const v8i all_zero_is_zero = (v8i){0} - !t->tiny;
  for (int i = 0; i < 16; ++i) {
    v8i c_bits;
    memcpy(&c_bits, t->d[i], sizeof c_bits);
    const v8f c = (v8f)c_bits;
    v8i top = c_bits & 0x7f800000;
    for (int k = 0; k < 16; ++k) {
      const v8i e =
          (v8i)(b_pow[k] * t->a_pow[i][k]) & 0x7fffffff; /* orders as an integer; inf * 0 stays NaN */
      const v8i more = e > top;
      top = (e & more) | (top & ~more);
    }
    const v8i zero = (top == 0) & ((c_bits & 0x7fffffff) == 0) & all_zero_is_zero;
    const v8i odd = ((top < LOW_BITS) | (top > HIGH_BITS)) & ~zero;
    const v8i exponent = (top & ~(zero | odd)) | ((zero | odd) & 0x3f800000);
    const v8f scale = (v8f)(0x3f800000 - exponent + (152 << 23)); /* 2^25 / 2^e */
    v8i sum0 = __builtin_convertvector(c * scale, v8i), sum1 = {0};
    for (int k = 0; k < 16; k += 2) {
      sum0 += __builtin_convertvector(b[k] * t->a[i][k] * scale, v8i);
      sum1 += __builtin_convertvector(b[k + 1] * t->a[i][k + 1] * scale, v8i);
    }
    v8d sum = __builtin_convertvector(sum0, v8d) + __builtin_convertvector(sum1, v8d);
    sum *= __builtin_convertvector((v8f)(exponent - (25 << 23)), v8d);
    const v8d cut = (v8d)((v8l)sum & ~(int64_t)0x1fffffff); /* 24 significant bits: exact as f32 */
    const v8f d = __builtin_convertvector(cut, v8f);
    uint8_t mask = 0;
    for (int j = 0; j < 8; ++j) mask |= (uint8_t)((odd[j] & 1) << j);
    t->odd[i] = mask;
    memcpy(t->d[i], &d, sizeof d);
  }
}

/* Values and powers of two of n raw patterns. Inf and NaN give a power above HIGH_BITS: the exact path.
 * Returns whether one is tiny. */
__attribute__((always_inline)) static inline bool widen(const uint16_t *raw, int n, bool bf16, float *value,
                                                        float *power) {
  v8i tiny = {0};
  for (int i = 0; i < n; i += 8) {
    v8i u, v, p;
    for (int j = 0; j < 8; ++j) u[j] = raw[i + j];
    const v8i sign = (u & 0x8000) << 16, magnitude = u & 0x7fff, is_zero = magnitude == 0;
    if (bf16) {
      v = u << 16;
      const v8i field = u & 0x7f80;
      p = (field | ((field == 0) & 0x0080)) << 16;
    } else {
      const v8i field = u & 0x7c00, one = (field | ((field == 0) & 0x0400)) << 13;
      p = one + (112 << 23);
      p |= (field == 0x7c00) & 0x7f800000;
      const v8f scaled = (v8f)(magnitude << 13) * 0x1p112f; /* exact: f16 subnormals become normal */
      v = (v8i)scaled | sign;
    }
    tiny |= (p < TINY_BITS) & ~is_zero;
    p &= ~is_zero;
    memcpy(value + i, &v, sizeof v);
    memcpy(power + i, &p, sizeof p);
  }
  bool any = false;
  for (int j = 0; j < 8; ++j) any |= tiny[j] != 0;
  return any;
}

__attribute__((always_inline)) static inline void tile_run(tile *t, const uint16_t *a, const uint16_t *b,
                                                           bool bf16) {
  if (bf16) {
    t->tiny = widen(a, 256, true, t->a[0], t->a_pow[0]);
    t->tiny |= widen(b, 128, true, t->b[0], t->b_pow[0]);
  } else {
    t->tiny = widen(a, 256, false, t->a[0], t->a_pow[0]);
    t->tiny |= widen(b, 128, false, t->b[0], t->b_pow[0]);
  }
  tile_core(t);
}

/* The same of n tf32 operands: the upper 19 bits of f32 patterns. */
__attribute__((always_inline)) static inline bool widen_tf32(const uint32_t *raw, float *value,
                                                             float *power) {
  v8i u;
  memcpy(&u, raw, sizeof u);
  u &= ~0x1fff;
  const v8i field = u & 0x7f800000, is_zero = (u & 0x7fffffff) == 0;
  v8i p = field | ((field == 0) & 0x00800000);
  const v8i tiny = (p < TINY_BITS) & ~is_zero;
  p &= ~is_zero;
  memcpy(value, &u, sizeof u);
  memcpy(power, &p, sizeof p);
  bool any = false;
  for (int j = 0; j < 8; ++j) any |= tiny[j] != 0;
  return any;
}

/* Half as deep: the other half of the tile is zeros. */
__attribute__((always_inline)) static inline void tile_run_tf32(tile *t, const uint32_t a[16][8],
                                                                const uint32_t b[8][8]) {
  memset(t->a, 0, sizeof t->a);
  memset(t->a_pow, 0, sizeof t->a_pow);
  memset(t->b[8], 0, sizeof t->b / 2);
  memset(t->b_pow[8], 0, sizeof t->b_pow / 2);
  t->tiny = false;
  for (int i = 0; i < 16; ++i) t->tiny |= widen_tf32(a[i], t->a[i], t->a_pow[i]);
  for (int k = 0; k < 8; ++k) t->tiny |= widen_tf32(b[k], t->b[k], t->b_pow[k]);
  tile_core(t);
}

static void run_plain(tile *t, const uint16_t *a, const uint16_t *b, bool bf16) {
  tile_run(t, a, b, bf16);
}
static void run_tf32_plain(tile *t, const uint32_t a[16][8], const uint32_t b[8][8]) {
  tile_run_tf32(t, a, b);
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) static void run_avx2(tile *t, const uint16_t *a, const uint16_t *b,
                                                     bool bf16) {
  tile_run(t, a, b, bf16);
}
__attribute__((target("avx2"))) static void run_tf32_avx2(tile *t, const uint32_t a[16][8],
                                                          const uint32_t b[8][8]) {
  tile_run_tf32(t, a, b);
}
#endif

typedef struct runners {
  void (*f16)(tile *, const uint16_t *, const uint16_t *, bool);
  void (*tf32)(tile *, const uint32_t (*)[8], const uint32_t (*)[8]);
} runners;

static const runners *choose(void) {
  static const runners plain = {run_plain, run_tf32_plain};
#if defined(__x86_64__)
  static const runners avx2 = {run_avx2, run_tf32_avx2};
  if (__builtin_cpu_supports("avx2")) return &avx2;
#endif
  return &plain;
}

static const runners *chosen(void) {
  static const runners *run;
  if (!run) run = choose(); /* every thread would store the same */
  return run;
}

void fa_mma_m16n8k16(float d[16][8], const uint16_t a[16][16], const uint16_t b[16][8], bool bf16) {
  tile t;
  memcpy(t.d, d, sizeof t.d);
  chosen()->f16(&t, a[0], b[0], bf16);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; t.odd[i] >> j; ++j) {
      if (!(t.odd[i] >> j & 1)) continue;
      uint16_t column[16];
      for (int k = 0; k < 16; ++k) column[k] = b[k][j];
      t.d[i][j] = fa_mma_dot16(a[i], column, d[i][j], bf16);
    }
  }
  memcpy(d, t.d, sizeof t.d);
}

void fa_mma_m16n8k8_tf32(float d[16][8], const uint32_t a[16][8], const uint32_t b[8][8]) {
  tile t;
  memcpy(t.d, d, sizeof t.d);
  chosen()->tf32(&t, a, b);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; t.odd[i] >> j; ++j) {
      if (!(t.odd[i] >> j & 1)) continue;
      uint32_t column[8];
      for (int k = 0; k < 8; ++k) column[k] = b[k][j];
      t.d[i][j] = fa_mma_dot8_tf32(a[i], column, d[i][j]);
    }
  }
  memcpy(d, t.d, sizeof t.d);
}
