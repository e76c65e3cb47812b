/* Backward, by keys: what the terms of bounds that differentiate left are over all rows that see a key. */
#ifndef FA_REF_CUDA_BY_KEY_CUH
#define FA_REF_CUDA_BY_KEY_CUH

#include "ref/cuda/find.cuh"

/* Of its type's normal range, in units of the head's dS. */
FA_DEVICE float floor_of_ds(const fa_judge_job *x, const fa_judge_head *head) {
  return fa_bound_floor_in_units(x->c, 1 / unit_of_ds(x, fa_bound_unit_of(head->largest_v)));
}

/* An element kernel, by keys of the wave's blocks: sums over a block's rows. */
FA_DEVICE void fa_judge_sum_rows(const fa_judge_job *x, int64_t at) {
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_key, at);
  const int64_t j = at - b->first_key, width = b->j_end - b->j_begin;
  const float floor = x->key_noise ? floor_of_ds(x, x->head + b->head) : 0;
  float terms = 0, exact = 0, most = 0;
  fa_below_normal noise = {0, 0};
  FA_DEEP
  for (int64_t r = 0; r < b->n; ++r) {
    const int64_t pair = b->first_pair + r * width + j;
    const float q = x->row[b->first_row + r].max_q;
    terms += x->e[pair];
    exact += x->d[pair];
    if (x->key_noise) fa_below_normal_add(&noise, x->g[pair], x->g2[pair], floor);
    most = q > most ? q : most;
  }
  x->key_terms[at] = terms * most;
  x->key_exact[at] = exact;
  if (x->key_noise) x->key_noise[at] = noise;
}

/* By keys of the turn: sums over blocks, in their order. */
FA_DEVICE void fa_judge_sum_blocks(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  const int64_t j = at - head->key;
  float terms = x->dk_terms[at], exact = x->dv_exact[at];
  fa_below_normal noise = x->dk_noise ? x->dk_noise[at] : (fa_below_normal){0, 0};
  int64_t block, end;
  blocks_of_head(x, head, &block, &end);
  for (; block < end; ++block) {
    const fa_judge_block *b = x->block + block;
    if (j < b->j_begin || j >= b->j_end) continue;
    terms += x->key_terms[b->first_key + j - b->j_begin];
    exact += x->key_exact[b->first_key + j - b->j_begin];
    if (x->dk_noise) fa_below_normal_join(&noise, &x->key_noise[b->first_key + j - b->j_begin]);
  }
  x->dk_terms[at] = terms;
  x->dv_exact[at] = exact;
  if (x->dk_noise) x->dk_noise[at] = noise;
}

#endif
