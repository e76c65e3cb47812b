/* How rounding errors of long sums grow, and when roundings repeat: the ground of the formulas (ref/bounds/formula.h). */
#ifndef FA_REF_BOUNDS_SUMS_H
#define FA_REF_BOUNDS_SUMS_H

#include "ref/engine/call.h"
#include "ref/math/element.h"

#define FA_F32_UNIT 0x1p-24
/* Smallest f32: what underflow can cost one operation. Units are far above it, so that it stays
 * representable. */
#define FA_F32_TINY 0x1p-149
#define FA_LEAST_UNIT 0x1p-89

/* What an n-term sum loses when bounds are computed from it: these sums are f32, in units of the largest
 * operands, and may be subnormal although the values they stand for are not. */
FA_BOTH double fa_bound_lost(int64_t n, double unit) {
  return 2 * (double)n * FA_F32_TINY * unit;
}

/* The smallest power of two >= x; 1 for zero, infinity and NaN. */
FA_BOTH double fa_bound_unit_of(double x) {
  int e;
  if (!(x > 0) || !(x <= 0x1p1000)) return 1;
  frexp(x, &e);
  return ldexp(1.0, e);
}

/* ---- by profile (docs/reference/bounds.md, "Sums") ---- */

/* Error of a plain f32 sum of n terms, relative to the sum of absolute values. */
FA_BOTH double fa_bound_sum(const fa_ref_call *c, int64_t n) {
  double worst = (double)n, typical = 4 * sqrt((double)n);
  return FA_F32_UNIT * (c->generic && typical < worst ? typical : worst);
}

/* Blocks whose sum is rounded to the accumulator: each tile begins a new one. */
FA_BOTH double fa_bound_blocks(const fa_profile *p, int64_t n, int block) {
  const int64_t size = block > 0 ? block : 1, tile = p->block_n > 0 ? p->block_n : 1;
  return (double)((n + size - 1) / size) + (double)(n / tile) + 2;
}

/* A type that is rounded to after every block; inside of it the sum is f32's. */
FA_BOTH double fa_bound_coarse_gamma(const fa_ref_call *c, int64_t n, double unit) {
  const double worst = fa_bound_blocks(c->profile, n, c->profile->mma_block), typical = 4 * sqrt(worst);
  return unit * (c->generic && typical < worst ? typical : worst) + fa_bound_sum(c, n);
}

/* 32 products and the accumulator are cut to 13 fraction bits of the largest. A product of 8 significant bits seldom
 * loses any: 5 units a block in the mean where all have one sign. */
FA_BOTH double fa_bound_narrow_gamma(const fa_ref_call *c, fa_product which, int64_t n) {
  const int64_t keys = which == FA_PRODUCT_PV ? c->profile->accumulator_keys : 0,
                some = keys > 0 && keys < n ? keys : n;
  const double in_f32 =
      some < n ? (double)((n + some - 1) / some) * FA_F32_UNIT : 0; /* one accumulator after another */
  return fa_bound_blocks(c->profile, some, 32) * (c->generic ? 6 : 34) * 0x1p-13 + in_f32;
}

/* The same of the kernel's GEMM. */
FA_BOTH double fa_bound_gamma(const fa_ref_call *c, fa_product which, int64_t n) {
  const fa_profile *p = c->profile;
  if (p->accumulator[which] == FA_ACCUMULATOR_NARROW) return fa_bound_narrow_gamma(c, which, n);
  if (p->accumulator[which] == FA_ACCUMULATOR_F16) return fa_bound_coarse_gamma(c, n, 0x1p-11);
  if (p->accumulator[which] == FA_ACCUMULATOR_BF16) return fa_bound_coarse_gamma(c, n, 0x1p-8);
  if (p->mma_block == 0 || p->accumulator[which] == FA_ACCUMULATOR_F32) return fa_bound_sum(c, n);
  double eps = ((p->mma_block + 1) * ldexp(1.0, -p->mma_extra_bits) + 1) * 0x1p-23;
  /* A row's keys need not start at a block boundary: one more block. */
  return ((double)((n + p->mma_block - 1) / p->mma_block) + 1) * eps;
}

/* What it loses besides to subnormals of the accumulator, and the largest sum that the accumulator can hold. */
FA_BOTH double fa_bound_sum_floor(const fa_ref_call *c, fa_product which, int64_t n) {
  const fa_accumulator kind = c->profile->accumulator[which];
  if (kind != FA_ACCUMULATOR_F16 && kind != FA_ACCUMULATOR_BF16) return 0;
  return (kind == FA_ACCUMULATOR_F16 ? 0x1p-25 : 0x1p-133) *
         fa_bound_blocks(c->profile, n, c->profile->mma_block);
}

FA_BOTH double fa_bound_sum_limit(const fa_ref_call *c, fa_product which) {
  return c->profile->accumulator[which] == FA_ACCUMULATOR_F16 ? 65504 : INFINITY;
}

/* Whether what the kernel computes on the way, or adds up, is of a type that ends below f32's largest value. */
FA_BOTH bool fa_bound_is_narrow(const fa_ref_call *c) {
  const fa_profile *p = c->profile;
  bool any = p->u_scores > 0 || p->u_dp > 0 || p->max_weight < INFINITY || p->max_partials < INFINITY;
  for (int i = 0; i < FA_N_PRODUCTS; ++i) any |= p->accumulator[i] > FA_ACCUMULATOR_MMA;
  return any;
}

/* The same, or an operand is: its outputs may be infinite or NaN, and elements that such a thing may reach have infinite
 * bounds. */
FA_BOTH bool fa_bound_may_overflow(const fa_ref_call *c) {
  bool any = fa_bound_is_narrow(c);
  for (int i = 0; i < FA_N_PRODUCTS; ++i) any |= c->profile->operand_max[i] < INFINITY;
  return any;
}

/* unit: a power of two above the largest operand. */
FA_BOTH bool fa_bound_unit_overflows(const fa_ref_call *c, fa_product which, double unit) {
  return unit / 2 > c->profile->operand_max[which];
}

/* The unit that independent errors are counted in: the unit roundoff of P or dS, or f32's if it is not rounded. */
FA_BOTH double fa_bound_unit(double rounded) {
  return rounded > 0 ? rounded : FA_F32_UNIT;
}

/* How often the running maximum of a row with n visible keys may change. */
FA_BOTH double fa_bound_changes(const fa_ref_call *c, int64_t n) {
  int64_t tile = c->profile->block_n > 0 ? c->profile->block_n : 1;
  double blocks = (double)((n + tile - 1) / tile + 1);
  /* Independent values set few new maxima (about log n), but a bias or slopes can make the logits climb. */
  bool climbing = !c->generic || c->p->alibi.present || c->p->bias.present || c->p->score_mod;
  return climbing || blocks < 16 ? blocks : 16;
}

/* ---- rows that round alike ---- */

/* How far apart the logits of a row are: the sum of the distances between neighbouring visible logits, each
 * capped at `most`, so that a few outliers do not count as spread. */
typedef struct fa_bound_spread {
  double sum, last, most;
  int64_t n;
} fa_bound_spread;

/* The standard deviation that n logits of a row need for their roundings, of relative size u, to be
 * independent of each other, and with by_keys also of their factors, the keys. */
FA_BOTH double fa_bound_least_spread(const fa_ref_call *c, double u, int64_t n, bool by_keys) {
  const double some = sqrt((double)n) / 2;
  return u * (by_keys && c->d <= 4 && some > 2 ? some : 2);
}

FA_BOTH bool fa_bound_is_alike(const fa_bound_spread *s, double least) {
  return s->sum < 1.2 * least * (double)s->n;
}

#endif
