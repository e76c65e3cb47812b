/* What score_mod and mask_mod do in a call: hide pairs, change scores, propagate gradients.
 *
 * An expression that has no value at a pair that counts (an index out of range, the logarithm of a negative
 * number, a mask that rounding decides) makes the case itself wrong: the first such pair is remembered, and
 * the call fails with it (fa_ref_mods_status). For mask_mod, pairs count that no other mask hides and that
 * are in a partial tile. For score_mod, visible pairs count. */
#ifndef FA_REF_MODS_TILE_H
#define FA_REF_MODS_TILE_H

#include "ref/engine/call.h"
#include "ref/mods/expr.h"

#include <pthread.h>

/* Kind of a tile, from the lists or from mask_mod. */
typedef enum fa_ref_tile { FA_TILE_UNLISTED, FA_TILE_PARTIAL, FA_TILE_FULL } fa_ref_tile;

typedef struct fa_ref_mods {
  fa_expr score, mask; /* n == 0: absent */
  /* block_sparse from mask_mod: [map_batch][map_heads][n_q][n_kv] of fa_ref_tile; NULL otherwise */
  uint8_t *map;
  int64_t map_batch, map_heads, n_q, n_kv;
  pthread_mutex_t lock;
  bool failed;
  int64_t failed_at[5]; /* mask_mod before score_mod, b, h, i, j */
  char why[400];
} fa_ref_mods;

/* Sets c->mods; NULL when the problem has neither. FA_ERR_MEMORY, or FA_ERR_INPUT from an expression. */
fa_status fa_ref_mods_init(fa_ref_call *c, fa_error *err);
void fa_ref_mods_free(fa_ref_call *c);
/* Call it after the work is done. FA_ERR_INPUT: "$.score_mod: column 7: ... at b 0, h 1, q_idx 3, kv_idx
 * 4". */
fa_status fa_ref_mods_status(const fa_ref_call *c, fa_error *err);

/* One thread's evaluators. */
typedef struct fa_ref_mod_scratch {
  fa_ref_expr score, mask;
  /* tiles [FA_BLOCK_M, FA_BLOCK_N]: inputs of score_mod, their errors, hidden pairs; NULL unless requested */
  double *before;
  float *before_error;
  uint8_t *hidden;
} fa_ref_mod_scratch;
/* Sets *out to NULL if c->mods is NULL. */
fa_status fa_ref_mod_scratch_init(fa_ref_mod_scratch **out, const fa_ref_call *c, bool keep_before,
                                  fa_error *err);
void fa_ref_mod_scratch_free(fa_ref_mod_scratch *m);

/* A row of n pairs, from key j0 on. */
typedef struct fa_ref_mod_row {
  const fa_ref_call *c;
  fa_ref_mod_scratch *m;
  const fa_ref_sequence *e;
  int64_t h, i, j0, n;
} fa_ref_mod_row;

/* hidden[j] = 1 where block lists or mask_mod hide the pair. */
void fa_ref_mods_hide(const fa_ref_mod_row *r, uint8_t *hidden);
/* The same by mask_mod alone. */
void fa_ref_mods_mask(const fa_ref_mod_row *r, uint8_t *hidden);
/* s[j] becomes score_mod(s[j]); before (may be NULL) receives the old values. */
void fa_ref_mods_score(const fa_ref_mod_row *r, const uint8_t *hidden, double *s, double *before);
/* ds[j] *= d score_mod / d score at before[j], where ds[j] is not 0. */
void fa_ref_mods_derivative(const fa_ref_mod_row *r, const double *before, double *ds);
/* e (absolute error of before; copied to e_before) becomes the error of score_mod's result. cap, cap_err
 * (NULL: omitted) hold the magnitude and absolute error of the derivative of the steps before score_mod, and
 * become the whole chain's. A visible pair fails if rounding decides whether a value, a pair or a derivative
 * exists, or if the expression amplifies errors so much that exp of the score means nothing. */
void fa_ref_mods_errors(const fa_ref_mod_row *r, const double *before, const uint8_t *hidden, float *e,
                        float *e_before, float *cap, float *cap_err);

/* The contribution of one visible pair to the gradient of a buffer's element: g times value. */
typedef void fa_ref_mods_add(void *context, int64_t lane, int buffer, int64_t element, double value,
                             double error);
/* Calls add for every load of a wanted buffer in every pair with p[j] > 0. e: error of before; NULL:
 * exact. */
void fa_ref_mods_gradient(const fa_ref_mod_row *r, const double *before, const double *p, const float *e,
                          const bool *wanted, fa_ref_mods_add *add, void *context);

/* ---- blocks.c ---- */

/* Block-sparse: is tile (i / q_block, j / kv_block) listed? Always true without lists. */
bool fa_ref_block_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j);
/* The same as a fa_ref_tile. Needs lists. */
int fa_ref_block_kind(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t j);

/* ---- call.c ---- */

/* The lists that block_sparse {"from": "mask_mod"} stands for, as [batch][heads_q][...]: kv_num_blocks,
 * kv_indices, full_kv_num_blocks, full_kv_indices, in ascending order, entries past the counts 0. A tile is
 * full if mask_mod holds for every pair of it that exists. The caller frees *out's arrays. */
fa_status fa_ref_block_lists(const fa_problem *p, const fa_tensors *in, fa_int32_array out[4], fa_error *err);

#endif
