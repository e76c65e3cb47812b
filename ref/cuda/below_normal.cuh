/* Sums of ref/bounds/below_normal.h, from a wave's panels. */
#ifndef FA_REF_CUDA_BELOW_NORMAL_CUH
#define FA_REF_CUDA_BELOW_NORMAL_CUH

#include "ref/cuda/find.cuh"

/* What the noise of a row of dQ is multiplied by. */
FA_DEVICE double below_normal_of(const fa_judge_job *x, const fa_judge_place *p, double unit_ds) {
  fa_below_normal sum = {0, 0};
  if (!fa_below_normal_matters(x->c)) return 1;
  const float floor = fa_bound_floor_in_units(x->c, 1 / unit_ds);
  for (int64_t j = p->begin + lane(); j < p->end; j += WARP)
    fa_below_normal_add(&sum, x->g[p->pair + j], x->g2[p->pair + j], floor);
  sum.all = warp_sum(sum.all);
  sum.more = warp_sum(sum.more);
  return fa_below_normal_factor(&sum);
}

/* Of key j of a block, over its rows. */
FA_DEVICE fa_below_normal below_normal_by_key(const fa_judge_job *x, const fa_judge_block *b, int64_t j) {
  const double unit_v = fa_bound_unit_of(x->head[b->head].largest_v);
  const float floor = fa_bound_floor_in_units(x->c, 1 / unit_of_ds(x, unit_v));
  const int64_t width = b->j_end - b->j_begin;
  fa_below_normal sum = {0, 0};
  FA_DEEP
  for (int64_t r = 0; r < b->n; ++r) {
    const int64_t pair = b->first_pair + r * width + j;
    fa_below_normal_add(&sum, x->g[pair], x->g2[pair], floor);
  }
  return sum;
}

#endif
