/* dSinks, a warp a head: what the rows of a wave add to it, sequence by sequence. */
#ifndef FA_REF_CUDA_DSINKS_CUH
#define FA_REF_CUDA_DSINKS_CUH

#include "ref/cuda/find.cuh"

FA_DEVICE void fa_judge_add_dsinks(const fa_judge_job *x, int64_t h) {
  for (int64_t n = 0; n < x->n_blocks; ++n) {
    const fa_judge_block *b = x->block + n;
    fa_bound_dsink sum = {0, 0, 0};
    if (b->h != h || !(b->sink > -INFINITY)) continue;
    for (int64_t r = lane(); r < b->n; r += WARP) {
      const fa_bound_dsink *part = &x->row[b->first_row + r].dsink;
      sum.value += part->value;
      sum.size += part->size;
      sum.error += part->error;
    }
    sum.value = warp_sum(sum.value);
    sum.size = warp_sum(sum.size);
    sum.error = warp_sum(sum.error);
    if (lane() != 0) continue;
    x->want_dsinks.value[h] += sum.value;
    x->dsinks[h].size += sum.size;
    x->dsinks[h].error += sum.error;
  }
}

/* One row of all heads, whose scale is their largest. */
FA_DEVICE void fa_judge_settle_dsinks(const fa_judge_job *x, int64_t at) {
  const fa_ref_call *c = x->c;
  const fa_judge_want *w = &x->want_dsinks;
  int64_t n = 0;
  float most = 0;
  for (int64_t b = 0; b < c->p->batch; ++b) n += c->entry[b].sq;
  for (int64_t h = lane(); h < c->heads_q; h += WARP) {
    most = fmaxf(most, (float)fabs(w->value[h]));
    w->accum[h] = fa_bound_dsink_sum(c, n, x->dsinks[h].size, x->dsinks[h].error);
  }
  most = warp_max(most);
  if (lane() == 0) w->scale[at] = most;
}

#endif
