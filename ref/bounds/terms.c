/* How rounding errors of long sums grow, by profile (docs/reference/bounds.md, "Sums"). */
#include "ref/bounds/terms.h"

#include <math.h>

static const double u = 0x1p-24;

double fa_bound_sum(const fa_ref_call *c, int64_t n) {
  double worst = (double)n, typical = 4 * sqrt((double)n);
  return u * (c->generic && typical < worst ? typical : worst);
}

double fa_bound_gamma(const fa_ref_call *c, int64_t n) {
  const fa_profile *p = c->profile;
  if (p->mma_block == 0) return fa_bound_sum(c, n);
  double eps = ((p->mma_block + 1) * ldexp(1, -p->mma_extra_bits) + 1) * 0x1p-23;
  /* A row's keys need not start at a block boundary: one more block. */
  return ((double)((n + p->mma_block - 1) / p->mma_block) + 1) * eps;
}

double fa_bound_changes(const fa_ref_call *c, int64_t n) {
  int64_t tile = c->profile->block_n > 0 ? c->profile->block_n : 1;
  double blocks = (double)((n + tile - 1) / tile + 1);
  /* Independent values set few new maxima (about log n), but a bias or slopes can make the logits climb. */
  bool climbing = !c->generic || c->p->alibi.present || c->p->bias.present || c->p->score_mod;
  return climbing || blocks < 16 ? blocks : 16;
}
