/* Prepared expressions and block lists of gpu/fa.h. */
#ifndef FA_GPU_EXPR_PROGRAM_H
#define FA_GPU_EXPR_PROGRAM_H

#include "gpu/expr/diff.h"
#include "gpu/fa.h"
#include "gpu/kernels/params/flex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Immutable once made. */
struct fa_flex_program {
  fa_expr score, mask;       /* n == 0: there is none */
  fa_expr_gradient gradient; /* of score, where there is one */
  int n_buffers;
  fa_capture buffer[FA_FLEX_MAX_BUFFERS]; /* the buffers that the expressions were parsed with */
};

static inline bool fa_flex_has_score(const fa_flex_program *p) {
  return p && p->score.n > 0;
}
static inline bool fa_flex_has_mask(const fa_flex_program *p) {
  return p && p->mask.n > 0;
}
/* Bytes of a block map, for all sequences and heads: a byte for each block. */
#define FA_FLEX_MAX_MAP ((int64_t)1 << 33)
/* Number of blocks along each axis of an attention whose flex is not NULL; 0 without blocks. */
int64_t fa_flex_n_q(const fa_attention *a);
int64_t fa_flex_n_kv(const fa_attention *a);
bool fa_flex_has_blocks(const fa_attention *a);
/* For how many sequences and heads the block map is made: from the lists, or from what mask_mod depends
 * on. */
int64_t fa_flex_map_batch(const fa_attention *a);
int64_t fa_flex_map_heads(const fa_attention *a);
/* Number of elements of a buffer. */
int64_t fa_flex_captured_count(const fa_capture *c);

/* ---- checks of attentions whose flex is not NULL ---- */

/* Sizes and features, without tensors. FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_flex_check_problem(const fa_attention *a, fa_error *err);
/* Pointers of buffers and lists. */
fa_status fa_flex_check_tensors(const fa_attention *a, fa_error *err);
/* dbuffer of a backward call. */
fa_status fa_flex_check_gradients(const fa_attention *a, const fa_gradients *g, fa_error *err);
/* The lists' contents in host memory (for check_device_data). Absent ones are NULL. */
fa_status fa_flex_check_lists(const fa_attention *a, const int32_t *kv_num_blocks, const int32_t *kv_indices,
                              const int32_t *full_kv_num_blocks, const int32_t *full_kv_indices,
                              fa_error *err);

/* ---- lists of blocks from mask_mod ---- */

/* Checks the fields of a that fa_flex_blocks reads, and copies only those to *out; out's flex is *flex, with
 * blocks_from_mask_mod set. FA_ERR_INPUT, FA_ERR_UNSUPPORTED. */
fa_status fa_flex_blocks_problem(const fa_attention *a, fa_attention *out, fa_flex *flex, fa_error *err);
/* Checks the outputs for such an attention. */
fa_status fa_flex_blocks_check(const fa_attention *a, const fa_flex_block_lists *lists, fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
