/* Which head or block an item of a launch belongs to, and what is true of it. */
#ifndef FA_REF_CUDA_FIND_CUH
#define FA_REF_CUDA_FIND_CUH

#include "ref/cuda/job.h"
#include "ref/cuda/machine.cuh"

#include "ref/engine/geometry.h"
#include "ref/tiles/lse.h"

FA_DEVICE float float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
FA_DEVICE uint32_t bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The last of n elements of a list whose member, a count of what is before it, is at most `at`. */
template <typename T>
FA_DEVICE const T *last_before(const T *list, int64_t n, int64_t T::*member, int64_t at) {
  int64_t low = 0, high = n;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (list[middle].*member <= at)
      low = middle;
    else
      high = middle;
  }
  return list + low;
}

FA_DEVICE const fa_judge_head *head_of_key(const fa_judge_job *x, int64_t at) {
  return last_before((const fa_judge_head *)x->head, x->n_heads, &fa_judge_head::key, at);
}
FA_DEVICE const fa_judge_block *block_of_row(const fa_judge_job *x, int64_t at) {
  return last_before(x->block, x->n_blocks, &fa_judge_block::first_row, at);
}

/* A row of the wave in Q, dO and, backward, O, as they were uploaded. */
FA_DEVICE int64_t load_of(const fa_judge_job *x, const fa_judge_block *b, int64_t row) {
  return b->load + (row - b->first_row) * x->q_step;
}

/* Those blocks of the wave whose rows read a head. */
FA_DEVICE void blocks_of_head(const fa_judge_job *x, const fa_judge_head *head, int64_t *first,
                              int64_t *end) {
  *first = head->first_block > x->wave ? head->first_block - x->wave : 0;
  *end = head->end_block - x->wave < x->n_blocks ? head->end_block - x->wave : x->n_blocks;
}

FA_DEVICE double unit_of_q(const fa_judge_job *x) {
  const double q = x->found->q * x->c->q_descale_most;
  return fa_bound_unit_of(x->rotated.data ? 2 * q : q);
}
FA_DEVICE double unit_of_do(const fa_judge_job *x) {
  return fa_bound_unit_of(x->found->d_o);
}
FA_DEVICE double unit_of_ds(const fa_judge_job *x, double unit_v) {
  const double dlse = x->dlse.data ? fa_bound_unit_of(x->found->dlse) : 0;
  return fmax(fmax(unit_of_do(x) * unit_v, dlse), FA_LEAST_UNIT);
}

/* A row of a block: the keys that it sees, counted from the block's first, and its panels' rows. */
typedef struct fa_judge_place {
  const fa_judge_block *b;
  const fa_judge_head *head;
  const fa_ref_sequence *e;
  int64_t row, i, width, begin, end; /* row: of the wave, i: of the sequence; end <= begin: sees nothing */
  int64_t pair;                      /* of its first pair in the panels */
} fa_judge_place;

FA_DEVICE fa_judge_place place_of_row(const fa_judge_job *x, const fa_judge_block *b, int64_t r) {
  fa_judge_place out;
  out.b = b;
  out.head = x->head + b->head;
  out.e = x->c->entry + out.head->b;
  out.row = b->first_row + r;
  out.i = b->i0 + r;
  out.width = b->j_end - b->j_begin;
  fa_ref_mask_range(&x->c->p->mask, out.e->sk, out.e->shift, out.i, &out.begin, &out.end);
  if (out.begin >= out.end) out.begin = out.end = b->j_begin;
  out.begin -= b->j_begin;
  out.end -= b->j_begin;
  out.pair = b->first_pair + r * out.width;
  return out;
}

/* Whether the tile that key j of a block is in is visited. */
FA_DEVICE bool is_visited(const fa_judge_job *x, const fa_judge_block *b, int64_t j) {
  return !x->visits.data || ((const unsigned char *)x->visits.data)[b->first_visit + j / FA_BLOCK_N];
}

FA_DEVICE bool is_any_visited(const fa_judge_job *x, const fa_judge_block *b) {
  for (int64_t j = 0; j < b->j_end - b->j_begin; j += FA_BLOCK_N)
    if (is_visited(x, b, j)) return true;
  return false;
}

/* Its row of O and dQ. */
FA_DEVICE int64_t want_of(const fa_judge_job *x, const fa_judge_place *p) {
  return p->b->want + (p->row - p->b->first_row) * x->c->heads_q;
}

FA_DEVICE fa_judge_place place_of(const fa_judge_job *x, int64_t at) {
  const fa_judge_block *b = block_of_row(x, at);
  return place_of_row(x, b, at - b->first_row);
}

#endif
