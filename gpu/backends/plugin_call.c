#include "gpu/backends/plugin_call.h"

#include "cases/codec/json.h"
#include "cases/recipe/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int plain_dtype(fa_dtype d) {
  switch (d) {
  case FA_F16:
    return FA_PLUGIN_F16;
  case FA_BF16:
    return FA_PLUGIN_BF16;
  case FA_F64:
    return FA_PLUGIN_F64;
  case FA_I32:
    return FA_PLUGIN_I32;
  case FA_U8:
    return FA_PLUGIN_U8;
  case FA_I64:
    return FA_PLUGIN_I64;
  case FA_BOOL:
    return FA_PLUGIN_BOOL;
  case FA_E4M3:
    return FA_PLUGIN_E4M3;
  case FA_E5M2:
    return FA_PLUGIN_E5M2;
  case FA_I8:
    return FA_PLUGIN_I8;
  default:
    return FA_PLUGIN_F32;
  }
}

/* ---- the problem ---- */

static void set_sizes(fa_plugin_problem *x, const fa_problem *p) {
  x->family = fa_family_name(p->family);
  x->dtype = plain_dtype(p->dtype);
  x->backward = p->backward;
  x->batch = p->batch;
  x->heads_q = p->heads_q;
  x->heads_kv = p->heads_kv;
  x->seqlen_q = p->seqlen_q;
  x->seqlen_k = p->seqlen_k;
  x->head_dim = p->head_dim;
  x->head_dim_v = p->head_dim_v;
  x->cu_seqlens_q = p->cu_seqlens_q.v;
  x->cu_seqlens_k = p->cu_seqlens_k.v;
  x->seqused_k = p->seqused_k.v;
  x->leftpad_k = p->leftpad_k.v;
}

static void set_scores(fa_plugin_problem *x, const fa_problem *p) {
  const fa_window window = fa_mask_window(&p->mask);
  x->scale = p->scale;
  x->softcap = p->softcap;
  x->mask = fa_mask_describe(p->mask.type)->name;
  x->window_left = window.left;
  x->window_right = window.right;
  x->align_top_left = p->mask.align == FA_ALIGN_TOP_LEFT;
  x->alibi = p->alibi.present;
  x->bias = p->bias.present;
  x->bias_grad = p->bias.present && p->bias.grad;
  x->sinks = p->sinks.present;
  x->sinks_grad = p->sinks.grad && p->backward;
  x->sinks_in_lse = p->sinks.in_lse;
  x->dropout_p = p->dropout.p;
  x->dropout_seed = p->dropout.seed;
  x->dropout_offset = p->dropout.offset;
  x->empty_lse = p->empty_lse == FA_EMPTY_POS_INF   ? INFINITY
                 : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY
                                                    : 0.0f;
  x->return_softmax = p->return_softmax;
  x->grad_lse = p->grad_lse;
  x->deterministic = p->deterministic;
  x->splits = p->splits;
}

static void set_captures(fa_plugin_call_problem *out, const fa_problem *p) {
  for (int k = 0; k < p->n_captures; ++k) {
    const fa_capture *from = &p->captures[k];
    fa_plugin_capture *to = &out->capture[k];
    *to = (fa_plugin_capture){.size = sizeof *to,
                              .name = from->name,
                              .dtype = plain_dtype(from->dtype),
                              .rank = from->rank,
                              .wants_gradient = p->backward && from->grad};
    memcpy(to->shape, from->shape, sizeof to->shape);
    out->captures[k] = to;
  }
  out->problem.n_captures = p->n_captures;
  out->problem.captures = out->captures;
}

static void set_lists_and_cache(fa_plugin_problem *x, const fa_problem *p) {
  const fa_kvcache *kv = &p->kvcache;
  x->block_sparse = p->block_sparse.present;
  if (p->block_sparse.present) {
    x->q_block = p->block_sparse.q_block;
    x->kv_block = p->block_sparse.kv_block;
  }
  x->cache = kv->present;
  x->n_new = kv->n_new;
  x->page_size = kv->page_size;
  x->rotary_dim = kv->rotary_dim;
  x->rotary_interleaved = kv->rotary_interleaved;
  x->cache_seqlens = kv->len.v;
  x->cache_batch_idx = kv->batch_idx.v;
  x->chunk = fa_mask_chunk(&p->mask);
  x->mask_bits = p->mask_bits.present;
  x->v_in_k = kv->v_in_k;
  x->topk = p->topk.k;
  x->quantized = p->quantized.present;
  x->quantized_queries = p->quantized.queries;
  x->descale = p->quantized.present ? fa_descale_per_name(p->quantized.per) : NULL;
  x->amax = p->quantized.amax;
  x->quantized_o = fa_quantizes_o(&p->quantized);
  x->lse_padded = p->lse_padded;
}

void fa_plugin_call_problem_set(fa_plugin_call_problem *out, const fa_problem *p) {
  memset(out, 0, sizeof *out);
  out->problem.size = sizeof out->problem;
  out->problem.score_mod = p->score_mod;
  out->problem.mask_mod = p->mask_mod;
  set_sizes(&out->problem, p);
  set_scores(&out->problem, p);
  set_captures(out, p);
  set_lists_and_cache(&out->problem, p);
}

char *fa_plugin_call_json(const fa_problem *p) {
  fa_case c;
  char *line = NULL;
  if (fa_case_init(&c) != FA_OK) return NULL;
  fa_problem_free(&c.problem);
  if (fa_problem_copy(&c.problem, p) == FA_OK) line = fa_case_to_line(&c);
  fa_case_free(&c);
  return line;
}

/* ---- the tensors ---- */

/* Every member, and the name that the list has for it. */
static const struct {
  const char *name;
  size_t at;
} members[] = {
#define MEMBER(member)                                                                                       \
  { #member, offsetof(fa_plugin_tensors, member) }
    MEMBER(q),
    MEMBER(k),
    MEMBER(v),
    MEMBER(bias),
    MEMBER(alibi_slopes),
    {"do", offsetof(fa_plugin_tensors, d_o)}, /* a word of C */
    {"dlse", offsetof(fa_plugin_tensors, d_lse)},
    MEMBER(cu_seqlens_q),
    MEMBER(cu_seqlens_k),
    MEMBER(seqused_k),
    MEMBER(leftpad_k),
    MEMBER(k_new),
    MEMBER(v_new),
    MEMBER(cache_seqlens),
    MEMBER(cache_batch_idx),
    MEMBER(block_table),
    MEMBER(rotary_cos),
    MEMBER(rotary_sin),
    MEMBER(kv_num_blocks),
    MEMBER(kv_indices),
    MEMBER(full_kv_num_blocks),
    MEMBER(full_kv_indices),
    MEMBER(q_num_blocks),
    MEMBER(q_indices),
    MEMBER(full_q_num_blocks),
    MEMBER(full_q_indices),
    MEMBER(o),
    MEMBER(lse),
    MEMBER(p_debug),
    MEMBER(dq),
    MEMBER(dk),
    MEMBER(dv),
    MEMBER(dbias),
    MEMBER(mask_bits),
    MEMBER(mask_indptr),
    MEMBER(sinks),
    MEMBER(dsinks),
    MEMBER(topk_indices),
    MEMBER(topk_length),
    MEMBER(q_descale),
    MEMBER(k_descale),
    MEMBER(v_descale),
    MEMBER(k_scales),
    MEMBER(v_scales),
    MEMBER(amax_p),
    MEMBER(amax_o),
    MEMBER(o_scale)
#undef MEMBER
};

fa_plugin_tensor fa_plugin_call_tensor(const fa_tensor *t) {
  fa_plugin_tensor x = {.data = t->data, .dtype = plain_dtype(t->dtype), .rank = t->rank};
  memcpy(x.shape, t->shape, sizeof x.shape);
  memcpy(x.stride, t->stride, sizeof x.stride);
  return x;
}

/* Where a tensor of the list belongs. */
static fa_plugin_tensor *place_of(fa_plugin_call_tensors *out, const fa_problem *p, const fa_exec_tensor *e) {
  for (int k = 0; e->group != FA_EXEC_TENSORS && k < p->n_captures; ++k)
    if (strcmp(p->captures[k].name, e->name) == 0)
      return e->group == FA_EXEC_BUFFERS ? &out->buffer[k] : &out->dbuffer[k];
  for (size_t i = 0; e->group == FA_EXEC_TENSORS && i < sizeof members / sizeof *members; ++i)
    if (strcmp(members[i].name, e->name) == 0)
      return (fa_plugin_tensor *)(void *)((char *)&out->tensors + members[i].at);
  return NULL;
}

void fa_plugin_call_tensors_set(fa_plugin_call_tensors *out, const fa_problem *p,
                                const fa_exec_tensors *list) {
  memset(out, 0, sizeof *out);
  out->tensors.size = sizeof out->tensors;
  out->tensors.buffers = out->buffer;
  out->tensors.dbuffers = out->dbuffer;
  for (int i = 0; i < list->n; ++i) {
    fa_plugin_tensor *to = place_of(out, p, &list->at[i]);
    FA_ASSERT(to); /* a tensor that the table has, and the header does not */
    *to = fa_plugin_call_tensor(list->at[i].tensor);
  }
}
