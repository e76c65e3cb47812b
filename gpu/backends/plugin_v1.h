/* Version 1 of gpu/plugin.h, whose libraries still load: its structs as they were, and the calls that go through
 * them. Frozen: libraries out there have this layout. */
#ifndef FA_GPU_BACKENDS_PLUGIN_V1_H
#define FA_GPU_BACKENDS_PLUGIN_V1_H

#include "gpu/backend.h"
#include "gpu/plugin.h"

typedef struct fa_plugin_v1_problem {
  const char *family;
  int dtype, variable_length;
  int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_k, head_dim, head_dim_v;
  double scale, softcap;
  int64_t window_left, window_right;
  int align_top_left;
  double dropout_p;
  uint64_t dropout_seed, dropout_offset;
  float empty_lse;
  int64_t splits;
  int deterministic, backward;
  const char *score_mod, *mask_mod;
  int64_t n_new, page_size, rotary_dim;
  int rotary_interleaved;
  int64_t q_block, kv_block;
} fa_plugin_v1_problem;

typedef struct fa_plugin_v1_tensors {
  fa_plugin_tensor q, k, v, bias, alibi_slopes, d_o, d_lse;
  fa_plugin_tensor cu_seqlens_q, cu_seqlens_k, seqused_k, leftpad_k;
  fa_plugin_tensor k_new, v_new, cache_seqlens, cache_batch_idx, block_table, rotary_cos, rotary_sin;
  fa_plugin_tensor kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices;
  fa_plugin_tensor o, lse, p_debug, dq, dk, dv, dbias;
} fa_plugin_v1_tensors;

/* What bounds are made for. Before the call it has "recorded" and these values: */
typedef struct fa_plugin_v1_arithmetic {
  const char *name;
  int block_n, max_splits;             /* 0: as the name has it */
  int dq_atomic, gqa_partials_rounded; /* -1: likewise */
} fa_plugin_v1_arithmetic;

typedef struct fa_plugin_v1 {
  uint32_t version, size;
  const char *name;
  int (*open)(void **self, char *message, size_t message_size);
  void (*close)(void *self);
  unsigned (*supports)(void *self, const fa_plugin_v1_problem *problem, char *why_not, size_t why_not_size);
  void (*arithmetic)(void *self, const fa_plugin_v1_problem *problem, fa_plugin_v1_arithmetic *out);
  int (*run)(void *self, const fa_plugin_v1_problem *problem, const fa_plugin_v1_tensors *tensors,
             unsigned passes, char *message, size_t message_size);
} fa_plugin_v1;

/* FA_ERR_INPUT: not this version's table. */
fa_status fa_plugin_v1_check(const fa_plugin_v1 *t, const char *path, fa_error *err);
/* As the table's supports; what its structs cannot say is not supported. */
unsigned fa_plugin_v1_supports(const fa_plugin_v1 *t, void *self, const fa_problem *p, char *reason,
                               size_t reason_size);
fa_profile fa_plugin_v1_profile(const fa_plugin_v1 *t, void *self, const fa_problem *p);
/* The table's answer, and its message. */
int fa_plugin_v1_run(const fa_plugin_v1 *t, void *self, const fa_problem *p, const fa_tensors *tensors,
                     unsigned passes, char *message, size_t message_size);

#endif
