/* How rounding errors of long sums grow, by profile (docs/reference/bounds.md, "Sums"). */
#include "ref/bounds/terms.h"

#include <math.h>

static const double u = 0x1p-24;

double fa_bound_sum(const fa_ref_call *c, int64_t n) {
  double worst = (double)n, typical = 4 * sqrt((double)n);
  return u * (c->generic && typical < worst ? typical : worst);
}

/* Blocks whose sum is rounded to the accumulator: each tile begins a new one. */
static double blocks_of(const fa_profile *p, int64_t n, int block) {
  const int64_t size = block > 0 ? block : 1, tile = p->block_n > 0 ? p->block_n : 1;
  return (double)((n + size - 1) / size) + (double)(n / tile) + 2;
}

/* A type that is rounded to after every block; inside of it the sum is f32's. */
static double coarse_gamma(const fa_ref_call *c, int64_t n, double unit) {
  const double worst = blocks_of(c->profile, n, c->profile->mma_block), typical = 4 * sqrt(worst);
  return unit * (c->generic && typical < worst ? typical : worst) + fa_bound_sum(c, n);
}

/* 32 products and the accumulator are cut to 13 fraction bits of the largest. A product of 8 significant bits seldom
 * loses any: 5 units a block in the mean where all have one sign. */
static double narrow_gamma(const fa_ref_call *c, fa_product which, int64_t n) {
  const int64_t keys = which == FA_PRODUCT_PV ? c->profile->accumulator_keys : 0,
                some = keys > 0 && keys < n ? keys : n;
  const double in_f32 =
      some < n ? (double)((n + some - 1) / some) * u : 0; /* one accumulator after another */
  return blocks_of(c->profile, some, 32) * (c->generic ? 6 : 34) * 0x1p-13 + in_f32;
}

double fa_bound_gamma(const fa_ref_call *c, fa_product which, int64_t n) {
  const fa_profile *p = c->profile;
  if (p->accumulator[which] == FA_ACCUMULATOR_NARROW) return narrow_gamma(c, which, n);
  if (p->accumulator[which] == FA_ACCUMULATOR_F16) return coarse_gamma(c, n, 0x1p-11);
  if (p->accumulator[which] == FA_ACCUMULATOR_BF16) return coarse_gamma(c, n, 0x1p-8);
  if (p->mma_block == 0 || p->accumulator[which] == FA_ACCUMULATOR_F32) return fa_bound_sum(c, n);
  double eps = ((p->mma_block + 1) * ldexp(1, -p->mma_extra_bits) + 1) * 0x1p-23;
  /* A row's keys need not start at a block boundary: one more block. */
  return ((double)((n + p->mma_block - 1) / p->mma_block) + 1) * eps;
}

double fa_bound_sum_floor(const fa_ref_call *c, fa_product which, int64_t n) {
  const fa_accumulator kind = c->profile->accumulator[which];
  if (kind != FA_ACCUMULATOR_F16 && kind != FA_ACCUMULATOR_BF16) return 0;
  return (kind == FA_ACCUMULATOR_F16 ? 0x1p-25 : 0x1p-133) * blocks_of(c->profile, n, c->profile->mma_block);
}

double fa_bound_sum_limit(const fa_ref_call *c, fa_product which) {
  return c->profile->accumulator[which] == FA_ACCUMULATOR_F16 ? 65504 : INFINITY;
}

bool fa_bound_may_overflow(const fa_ref_call *c) {
  const fa_profile *p = c->profile;
  bool any = p->u_scores > 0 || p->u_dp > 0 || p->max_weight < INFINITY || p->max_partials < INFINITY;
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    any |= p->operand_max[i] < INFINITY || p->accumulator[i] > FA_ACCUMULATOR_MMA;
  return any;
}

double fa_bound_unit(double rounded) {
  return rounded > 0 ? rounded : u;
}

double fa_bound_changes(const fa_ref_call *c, int64_t n) {
  int64_t tile = c->profile->block_n > 0 ? c->profile->block_n : 1;
  double blocks = (double)((n + tile - 1) / tile + 1);
  /* Independent values set few new maxima (about log n), but a bias or slopes can make the logits climb. */
  bool climbing = !c->generic || c->p->alibi.present || c->p->bias.present || c->p->score_mod;
  return climbing || blocks < 16 ? blocks : 16;
}
