/* The whole MMA tile in vectors of W rows. mma.c includes this once for each instruction set, with
 *   W              rows in a vector
 *   TILE(name)     the name's own version
 *   TARGET         the attribute that makes the compiler use the instruction set
 *   MOST(x, y)     the larger ones of two vectors of W int16
 *
 * Where every exponent is moderate, f32 is exact: a product of two 11-bit (8-bit) significands fits 24 bits;
 * scaling by 2^(25 - top) is exact, or leaves a part below 1 that the truncating conversion to int drops; and
 * an addend is then below 2^27, so that eight of them fit an int32. */

typedef float TILE(vf) __attribute__((vector_size(4 * W)));
typedef int32_t TILE(vi) __attribute__((vector_size(4 * W)));
typedef int16_t TILE(vh) __attribute__((vector_size(2 * W)));
typedef double TILE(vd) __attribute__((vector_size(4 * W))); /* half as many */
typedef int64_t TILE(vl) __attribute__((vector_size(4 * W)));
typedef float TILE(half_f) __attribute__((vector_size(2 * W)));
typedef int32_t TILE(half_i) __attribute__((vector_size(2 * W)));

/* Values and exponents of n raw patterns of 16 bits. */
TARGET static inline void TILE(widen16)(const uint16_t *raw, int n, bool bf16, float *value,
                                        int16_t *exponent) {
  for (int i = 0; i < n; i += W) {
    TILE(vh) u;
    memcpy(&u, raw + i, sizeof u);
    const TILE(vh) magnitude = u & 0x7fff, field = bf16 ? magnitude >> 7 : magnitude >> 10;
    TILE(vh) e = (field | ((field == 0) & 1)) - (int16_t)(bf16 ? 127 : 15);
    e += (field == (int16_t)(bf16 ? 255 : 31)) & ENDLESS;
    e = (e & (magnitude != 0)) | ((magnitude == 0) & NOTHING);
    TILE(vi) bits = __builtin_convertvector(u, TILE(vi)) & 0xffff;
    if (bf16) {
      bits <<= 16;
    } else {
      const TILE(vi) sign = (bits & 0x8000) << 16;
      const TILE(vf) scaled =
          (TILE(vf))((bits & 0x7fff) << 13) * 0x1p112f; /* exact: subnormals become normal */
      bits = (TILE(vi))scaled | sign;
    }
    memcpy(value + i, &bits, sizeof bits);
    memcpy(exponent + i, &e, sizeof e);
  }
}

/* The same for tf32: the upper 19 bits of f32 patterns. */
TARGET static inline void TILE(widen32)(const uint32_t *raw, int n, float *value, int16_t *exponent) {
  for (int i = 0; i < n; i += W) {
    TILE(vi) u;
    memcpy(&u, raw + i, sizeof u);
    u &= ~0x1fff;
    const TILE(vi) magnitude = u & 0x7fffffff, field = magnitude >> 23;
    TILE(vi) e = (field | ((field == 0) & 1)) - 127 + ((field == 255) & ENDLESS);
    e = (e & (magnitude != 0)) | ((magnitude == 0) & NOTHING);
    const TILE(vh) narrow = __builtin_convertvector(e, TILE(vh));
    memcpy(value + i, &u, sizeof u);
    memcpy(exponent + i, &narrow, sizeof narrow);
  }
}

/* (sum0 + sum1) 2^(exponent - 127 - 25) toward zero, half a vector. */
TARGET static inline void TILE(narrow)(const int32_t *sum0, const int32_t *sum1, const float *unit,
                                       float *out) {
  TILE(half_i) x, y;
  TILE(half_f) u;
  memcpy(&x, sum0, sizeof x);
  memcpy(&y, sum1, sizeof y);
  memcpy(&u, unit, sizeof u);
  const TILE(vd) sum = (__builtin_convertvector(x, TILE(vd)) + __builtin_convertvector(y, TILE(vd))) *
                       __builtin_convertvector(u, TILE(vd));
  const TILE(vd) cut =
      (TILE(vd))((TILE(vl))sum & ~(int64_t)0x1fffffff); /* 24 significant bits: exact as f32 */
  const TILE(half_f) d = __builtin_convertvector(cut, TILE(half_f));
  memcpy(out, &d, sizeof d);
}

/* W rows of a column. Returns whether one of them needs the exact path; odd says which. */
TARGET static inline bool TILE(column)(const operands *x, int depth, int i, int j, const float *c, float *d,
                                       int32_t *odd) {
  TILE(vh) most;
  for (int l = 0; l < W; ++l) most[l] = 2 * NOTHING;
  for (int k = 0; k < depth; ++k) {
    TILE(vh) a;
    memcpy(&a, &x->a_exponent[k][i], sizeof a);
    a += x->b_exponent[k][j];
    most = MOST(a, most);
  }
  TILE(vi) bits, top = __builtin_convertvector(most, TILE(vi)) + 127;
  memcpy(&bits, c, sizeof bits);
  const TILE(vi) zero = (top < NOTHING / 2) & ((bits & 0x7fffffff) == 0), field = bits >> 23 & 255;
  const TILE(vi) more = field > top;
  top = (field & more) | (top & ~more);
  const TILE(vi) bad = ((top < 27) | (top > 227)) & ~zero; /* 2^-100, 2^100 */
  const TILE(vi) exponent = (top & ~(zero | bad)) | ((zero | bad) & 127);
  const TILE(vf) scale = (TILE(vf))((279 - exponent) << 23); /* 2^25 / 2^e */
  const TILE(vf) unit = (TILE(vf))((exponent - 25) << 23);
  TILE(vi) sum0 = __builtin_convertvector((TILE(vf))bits * scale, TILE(vi)), sum1 = {0};
  for (int k = 0; k < depth; k += 2) {
    TILE(vf) a0, a1;
    memcpy(&a0, &x->a[k][i], sizeof a0);
    memcpy(&a1, &x->a[k + 1][i], sizeof a1);
    sum0 += __builtin_convertvector(a0 * x->b[k][j] * scale, TILE(vi));
    sum1 += __builtin_convertvector(a1 * x->b[k + 1][j] * scale, TILE(vi));
  }
  int32_t s0[W], s1[W];
  float u[W];
  memcpy(s0, &sum0, sizeof s0);
  memcpy(s1, &sum1, sizeof s1);
  memcpy(u, &unit, sizeof u);
  TILE(narrow)(s0, s1, u, d);
  TILE(narrow)(s0 + W / 2, s1 + W / 2, u + W / 2, d + W / 2);
  memcpy(odd, &bad, sizeof bad);
  int32_t any = 0;
  for (int l = 0; l < W; ++l) any |= odd[l];
  return any != 0;
}

TARGET static bool TILE(columns)(const operands *x, int depth, fa_mma_tile *t, int32_t odd[8][16]) {
  bool any = false;
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 16; i += W) any |= TILE(column)(x, depth, i, j, &t->c[j][i], &t->d[j][i], &odd[j][i]);
  return any;
}

TARGET static bool TILE(run16)(fa_mma_tile *t, bool bf16, int32_t odd[8][16]) {
  operands x;
  if (bf16) {
    TILE(widen16)(t->a[0], 256, true, x.a[0], x.a_exponent[0]);
    TILE(widen16)(t->b[0], 128, true, x.b[0], x.b_exponent[0]);
  } else {
    TILE(widen16)(t->a[0], 256, false, x.a[0], x.a_exponent[0]);
    TILE(widen16)(t->b[0], 128, false, x.b[0], x.b_exponent[0]);
  }
  return TILE(columns)(&x, 16, t, odd);
}

TARGET static bool TILE(run32)(fa_mma_tile *t, int32_t odd[8][16]) {
  operands x;
  TILE(widen32)(t->a_tf32[0], 128, x.a[0], x.a_exponent[0]);
  TILE(widen32)(t->b_tf32[0], 64, x.b[0], x.b_exponent[0]);
  return TILE(columns)(&x, 8, t, odd);
}

#undef W
#undef TILE
#undef TARGET
#undef MOST
