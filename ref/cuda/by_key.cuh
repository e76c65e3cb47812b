/* Backward, by keys: what the terms of bounds that differentiate left are over all rows that see a key. */
#ifndef FA_REF_CUDA_BY_KEY_CUH
#define FA_REF_CUDA_BY_KEY_CUH

#include "ref/cuda/find.cuh"

/* An element kernel, by keys of the wave's blocks: sums over a block's rows. */
FA_DEVICE void fa_judge_sum_rows(const fa_judge_job *x, int64_t at) {
  const fa_judge_block *b = last_before(x->block, x->n_blocks, &fa_judge_block::first_key, at);
  const int64_t j = at - b->first_key, width = b->j_end - b->j_begin;
  float terms = 0, exact = 0, most = 0;
  FA_DEEP
  for (int64_t r = 0; r < b->n; ++r) {
    const int64_t pair = b->first_pair + r * width + j;
    const float q = x->row[b->first_row + r].max_q;
    terms += x->e[pair];
    exact += x->d[pair];
    most = q > most ? q : most;
  }
  x->key_terms[at] = terms * most;
  x->key_exact[at] = exact;
}

/* By keys of the turn: sums over blocks, in their order. */
FA_DEVICE void fa_judge_sum_blocks(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  const int64_t j = at - head->key;
  float terms = x->dk_terms[at], exact = x->dv_exact[at];
  int64_t block, end;
  blocks_of_head(x, head, &block, &end);
  for (; block < end; ++block) {
    const fa_judge_block *b = x->block + block;
    if (j < b->j_begin || j >= b->j_end) continue;
    terms += x->key_terms[b->first_key + j - b->j_begin];
    exact += x->key_exact[b->first_key + j - b->j_begin];
  }
  x->dk_terms[at] = terms;
  x->dv_exact[at] = exact;
}

#endif
