#include "gpu/backends/plugin_v1.h"

#include "gpu/backends/plugin_call.h"

#include <stdio.h>

_Static_assert(sizeof(fa_plugin_v1_problem) == 224, "as version 1 had it");
_Static_assert(sizeof(fa_plugin_v1_tensors) == 29 * sizeof(fa_plugin_tensor), "as version 1 had it");
_Static_assert(sizeof(fa_plugin_tensor) == 96, "as version 1 had it");
_Static_assert(sizeof(fa_plugin_v1_arithmetic) == 24, "as version 1 had it");
_Static_assert(sizeof(fa_plugin_v1) == 56, "as version 1 had it");

fa_status fa_plugin_v1_check(const fa_plugin_v1 *t, const char *path, fa_error *err) {
  if (t->size != sizeof *t)
    return fa_fail(err, FA_ERR_INPUT, "%s: fa_plugin_table has %u bytes; version 1 has %zu", path,
                   (unsigned)t->size, sizeof *t);
  if (!t->name || !t->supports || !t->run)
    return fa_fail(err, FA_ERR_INPUT, "%s: name, supports and run of fa_plugin_table must be set", path);
  return FA_OK;
}

static fa_plugin_v1_problem problem_of(const fa_problem *p) {
  fa_plugin_call_problem now;
  fa_plugin_call_problem_set(&now, p);
  const fa_plugin_problem *x = &now.problem;
  return (fa_plugin_v1_problem){.family = x->family,
                                .dtype = x->dtype,
                                .variable_length = x->cu_seqlens_q != NULL,
                                .batch = x->batch,
                                .heads_q = x->heads_q,
                                .heads_kv = x->heads_kv,
                                .seqlen_q = x->seqlen_q,
                                .seqlen_k = x->seqlen_k,
                                .head_dim = x->head_dim,
                                .head_dim_v = x->head_dim_v,
                                .scale = x->scale,
                                .softcap = x->softcap,
                                .window_left = x->window_left,
                                .window_right = x->window_right,
                                .align_top_left = x->align_top_left,
                                .dropout_p = x->dropout_p,
                                .dropout_seed = x->dropout_seed,
                                .dropout_offset = x->dropout_offset,
                                .empty_lse = x->empty_lse,
                                .splits = x->splits,
                                .deterministic = x->deterministic,
                                .backward = x->backward,
                                .score_mod = x->score_mod,
                                .mask_mod = x->mask_mod,
                                .n_new = x->n_new,
                                .page_size = x->page_size,
                                .rotary_dim = x->rotary_dim,
                                .rotary_interleaved = x->rotary_interleaved,
                                .q_block = x->q_block,
                                .kv_block = x->kv_block};
}

static fa_plugin_v1_tensors tensors_of(const fa_tensors *t) {
  static const fa_tensor_id order[] = {FA_T_Q,
                                       FA_T_K,
                                       FA_T_V,
                                       FA_T_BIAS,
                                       FA_T_ALIBI_SLOPES,
                                       FA_T_DO,
                                       FA_T_DLSE,
                                       FA_T_CU_SEQLENS_Q,
                                       FA_T_CU_SEQLENS_K,
                                       FA_T_SEQUSED_K,
                                       FA_T_LEFTPAD_K,
                                       FA_T_K_NEW,
                                       FA_T_V_NEW,
                                       FA_T_CACHE_SEQLENS,
                                       FA_T_CACHE_BATCH_IDX,
                                       FA_T_BLOCK_TABLE,
                                       FA_T_ROTARY_COS,
                                       FA_T_ROTARY_SIN,
                                       FA_T_KV_NUM_BLOCKS,
                                       FA_T_KV_INDICES,
                                       FA_T_FULL_KV_NUM_BLOCKS,
                                       FA_T_FULL_KV_INDICES,
                                       FA_T_O,
                                       FA_T_LSE,
                                       FA_T_P_DEBUG,
                                       FA_T_DQ,
                                       FA_T_DK,
                                       FA_T_DV,
                                       FA_T_DBIAS};
  union { /* the struct is its members in this order, and nothing else */
    fa_plugin_v1_tensors tensors;
    fa_plugin_tensor at[sizeof order / sizeof *order];
  } x;
  for (size_t i = 0; i < sizeof order / sizeof *order; ++i) x.at[i] = fa_plugin_call_tensor(&t->t[order[i]]);
  return x.tensors;
}

unsigned fa_plugin_v1_supports(const fa_plugin_v1 *t, void *self, const fa_problem *p, char *reason,
                               size_t reason_size) {
  const fa_plugin_v1_problem plain = problem_of(p);
  if (p->sinks.present) {
    snprintf(reason, reason_size, "version 1 of the plugin interface has no sinks");
    return 0;
  }
  if (p->lse_padded) {
    snprintf(reason, reason_size, "version 1 of the plugin interface has no padded LSE");
    return 0;
  }
  if (p->n_captures == 0) return t->supports(self, &plain, reason, reason_size);
  snprintf(reason, reason_size, "version 1 of the plugin interface has no captured buffers");
  return 0;
}

/* Unknown names become "recorded". */
static fa_profile profile_of(const fa_plugin_v1_arithmetic *a, fa_dtype dtype) {
  fa_profile out = fa_profile_get(a->name && fa_profile_exists(a->name) ? a->name : "recorded", dtype);
  if (a->block_n > 0) out.block_n = a->block_n;
  if (a->max_splits > 0) out.max_splits = a->max_splits;
  if (a->dq_atomic >= 0) out.dq_atomic = a->dq_atomic;
  if (a->gqa_partials_rounded >= 0) out.gqa_partials_in_io = a->gqa_partials_rounded;
  return out;
}

fa_profile fa_plugin_v1_profile(const fa_plugin_v1 *t, void *self, const fa_problem *p) {
  const fa_plugin_v1_problem plain = problem_of(p);
  fa_plugin_v1_arithmetic a = {.name = "recorded", .dq_atomic = -1, .gqa_partials_rounded = -1};
  if (t->arithmetic) t->arithmetic(self, &plain, &a);
  return profile_of(&a, p->dtype);
}

int fa_plugin_v1_run(const fa_plugin_v1 *t, void *self, const fa_problem *p, const fa_tensors *tensors,
                     unsigned passes, char *message, size_t message_size) {
  const fa_plugin_v1_problem problem = problem_of(p);
  const fa_plugin_v1_tensors plain = tensors_of(tensors);
  return t->run(self, &problem, &plain, passes, message, message_size);
}
