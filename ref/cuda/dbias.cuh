/* dBias, a thread an element: what the pairs of a wave add to it, in the order of sequences, heads and rows. */
#ifndef FA_REF_CUDA_DBIAS_CUH
#define FA_REF_CUDA_DBIAS_CUH

#include "ref/cuda/find.cuh"

/* Rows *first .. *end - 1 of a block share row `of` of the bias. */
FA_DEVICE void rows_of_bias(const fa_judge_job *x, const fa_judge_block *b, int64_t of, int64_t *first,
                            int64_t *end) {
  const fa_problem *p = x->c->p;
  const int64_t from = fa_ref_bias_index(p, x->head[b->head].b, b->h, 0);
  *first = 0;
  *end = from == of ? b->n : 0;
  if (!p->bias.per_query) return;
  *first = of - from - b->i0;
  *end = *first >= 0 && *first < b->n ? *first + 1 : *first;
}

/* accum holds the errors and quant the magnitudes, until all waves are done. */
FA_DEVICE void add_pairs(const fa_judge_job *x, const fa_judge_block *b, int64_t first, int64_t end,
                         int64_t j, double unit_ds, int64_t at) {
  const fa_judge_want *w = &x->want_dbias;
  const double u_p = x->c->profile->u_p_in_ds;
  for (int64_t r = first; r < end; ++r) {
    const int64_t pair = b->first_pair + r * (b->j_end - b->j_begin) + j - b->j_begin;
    w->value[at] += x->plain_ds[pair];
    w->accum[at] += fa_bound_dbias_term(x->plain_ge[pair] + u_p * x->plain_g[pair], unit_ds);
    w->quant[at] += fa_bound_dbias_term(x->plain_g[pair], unit_ds);
  }
}

FA_DEVICE void fa_judge_add_dbias(const fa_judge_job *x, int64_t at) {
  const int64_t sk = x->c->p->seqlen_k, of = at / sk, j = at % sk;
  for (int64_t n = 0; n < x->n_blocks; ++n) {
    const fa_judge_block *b = x->block + n;
    int64_t first, end;
    rows_of_bias(x, b, of, &first, &end);
    if (first >= end || b->j_begin == b->j_end) continue;
    const double unit_ds = unit_of_ds(x, fa_bound_unit_of(x->head[b->head].largest_v));
    if (j >= b->j_begin && j < b->j_end) add_pairs(x, b, first, end, j, unit_ds, at);
    for (int64_t r = first; j == 0 && r < end; ++r) /* before the cancellation in P (Z dP - delta) */
      x->want_dbias.scale[of] += (float)(x->row[b->first_row + r].plain_terms * unit_ds);
  }
}

/* No visible pair: exactly 0. */
FA_DEVICE void fa_judge_settle_dbias(const fa_judge_job *x, int64_t at) {
  const fa_judge_want *w = &x->want_dbias;
  if (w->accum[at] == 0 && w->quant[at] == 0 && w->value[at] == 0) return;
  w->accum[at] = fa_bound_dbias(x->c->profile, fa_bound_dbias_terms(x->c->p), w->accum[at], w->quant[at]);
  w->quant[at] = 0;
}

/* ---- dSinks, a warp a head: what the rows of a wave add to it, sequence by sequence ---- */


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
