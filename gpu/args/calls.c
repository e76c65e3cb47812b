#include "gpu/args/calls.h"

#include "gpu/call/check.h"

#include <stdio.h>
#include <string.h>

static void set_merge_calls(int n_processors, fa_args *x) {
  x->forward = (fa_call){.kind = FA_CALL_MERGE, .states = &x->states, .n_processors = n_processors};
  x->backward = (fa_call){.kind = FA_CALL_MERGE_BACKWARD,
                          .states = &x->states,
                          .states_g = &x->states_g,
                          .n_processors = n_processors};
}

static void set_calls(const fa_problem *p, int n_processors, fa_args *x) {
  if (p->family == FA_MERGE) {
    set_merge_calls(n_processors, x);
    return;
  }
  const bool over_cache = p->family == FA_KVCACHE;
  x->forward = (fa_call){.kind = over_cache ? FA_CALL_CACHE : FA_CALL_FORWARD,
                         .a = &x->a,
                         .cache = over_cache ? &x->cache : NULL,
                         .n_processors = n_processors};
  x->backward = (fa_call){.kind = FA_CALL_BACKWARD, .a = &x->a, .g = &x->g, .n_processors = n_processors};
}

fa_status fa_args_make(const fa_problem *p, const fa_tensors *t, bool backward, int n_processors,
                       fa_args *out, const char **why, fa_error *err) {
  const fa_status status = fa_args_flex_make(p, &out->flex, err); /* without expressions: nothing */
  set_calls(p, n_processors, out);
  *why = fa_args_beyond(p);
  if (status != FA_OK || *why) return status;
  if (p->family == FA_MERGE) {
    *why = fa_args_states_tensors(p, t, &out->states);
    if (!*why && backward) *why = fa_args_states_gradients(p, t, &out->states_g);
    return FA_OK;
  }
  if (p->family == FA_KVCACHE)
    *why = fa_args_cache_tensors(p, t, &out->a, &out->cache);
  else
    *why = fa_args_tensors(p, t, &out->a);
  if (!*why && fa_args_is_flex(p)) *why = fa_args_flex_tensors(p, t, &out->flex, &out->a);
  if (!*why && backward) *why = fa_args_gradients(p, t, &out->g);
  return FA_OK;
}

void fa_args_free(fa_args *x) {
  fa_args_flex_free(&x->flex);
}

/* ---- without tensors ---- */

/* Addresses that nobody follows. */
static _Alignas(256) char memory[256];

static fa_strides lse_strides(const fa_attention *a) {
  const int64_t rows = fa_attention_has_lse_batch(a) ? a->seqlen_q : a->total_q;
  return (fa_strides){a->heads_q * rows, 1, rows};
}

static void place_attention(bool aligned, fa_attention *a) {
  if (aligned && a->bias) {
    a->seqlen_k = (a->seqlen_k + 7) / 8 * 8; /* its rows begin on 16 bytes too */
    if (a->total_k < a->seqlen_k) a->total_k = a->seqlen_k;
  }
  a->q = a->k = a->v = memory;
  a->o = memory + (aligned ? 0 : 4); /* of a cache's tensors, one that is never copied */
  a->lse = (float *)(void *)memory;
  a->q_stride = fa_strides_dense(a->seqlen_q, a->heads_q, a->head_dim);
  a->o_stride = fa_strides_dense(a->seqlen_q, a->heads_q, a->head_dim_v);
  a->k_stride = fa_strides_dense(a->seqlen_k, a->heads_kv, a->head_dim);
  a->v_stride = fa_strides_dense(a->seqlen_k, a->heads_kv, a->head_dim_v);
  a->lse_stride = lse_strides(a);
  if (a->bias) a->bias = memory; /* the same for all: nobody asks */
}

/* A gradient of the bias has the axes that the bias has. */
static fa_strides dbias_strides(const fa_bias *b, const fa_attention *a) {
  const int64_t row = a->seqlen_k > 0 ? a->seqlen_k : 1, head = row * (b->per_query ? a->seqlen_q : 1),
                batch = head * (b->per_head ? a->heads_q : 1);
  return (fa_strides){b->per_batch ? batch : 0, b->per_query ? row : 0, b->per_head ? head : 0};
}

static void place_gradients(const fa_problem *p, const fa_attention *a, fa_gradients *g) {
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = a->o_stride;
  g->dq_stride = a->q_stride;
  g->dk_stride = a->k_stride;
  g->dv_stride = a->v_stride;
  g->num_splits_key = p->splits > 1 ? p->splits : 0;
  if (p->sinks.grad) g->dsinks = (float *)(void *)memory;
  if (!p->bias.present || !p->bias.grad) return;
  g->dbias = memory;
  g->dbias_stride = dbias_strides(&p->bias, a);
}

static void place_cache(const fa_problem *p, const fa_attention *a, fa_inference *kv) {
  if (kv->block_table) kv->max_pages = (a->seqlen_k + kv->page_size - 1) / kv->page_size;
  const int64_t slots = kv->block_table ? kv->page_size : p->seqlen_k;
  kv->k_cache = kv->v_cache = memory;
  kv->k_new = kv->v_new = memory;
  kv->k_cache_stride = fa_strides_dense(slots, p->heads_kv, p->head_dim);
  kv->v_cache_stride = fa_strides_dense(slots, p->heads_kv, p->head_dim_v);
  kv->k_scales = kv->v_scales = (const uint8_t *)(const void *)memory;
  kv->k_scales_stride = kv->v_scales_stride = fa_strides_dense(slots, p->heads_kv, 4);
  kv->k_new_stride = fa_strides_dense(kv->n_new, p->heads_kv, p->head_dim);
  kv->v_new_stride = fa_strides_dense(kv->n_new, p->heads_kv, p->head_dim_v);
}

static void place_flex(fa_flex *f) {
  for (int k = 0; f->program && k < FA_FLEX_MAX_BUFFERS; ++k) f->buffer[k] = memory;
  if (f->q_block && !f->blocks_from_mask_mod)
    f->kv_num_blocks = f->kv_indices = (const int32_t *)(const void *)memory;
}

static void place_states(fa_states *s, fa_states_gradients *g) {
  const fa_strides wide = fa_strides_dense(s->rows, s->heads, s->head_dim),
                   narrow = {s->heads * s->rows, 1, s->rows};
  const int64_t o_part = s->batch * wide.batch, lse_part = s->batch * narrow.batch;
  float *const lse = (float *)(void *)memory;
  fa_states_gradients_init(g);
  s->o_parts = s->o = g->do_parts = memory;
  g->d_o = memory;
  s->lse_parts = s->lse = g->dlse_parts = lse;
  s->o_parts_stride = s->o_stride = g->do_stride = g->do_parts_stride = wide;
  s->lse_parts_stride = s->lse_stride = g->dlse_parts_stride = narrow;
  s->o_parts_step = g->do_parts_step = o_part;
  s->lse_parts_step = g->dlse_parts_step = lse_part;
}

/* Sizes and features, and nothing of tensors. */
static fa_status make_problem(const fa_problem *p, int n_processors, fa_args *x, const char **why,
                              fa_error *err) {
  const fa_status status = fa_args_flex_make(p, &x->flex, err);
  set_calls(p, n_processors, x);
  fa_gradients_init(&x->g); /* a plan asks whether a delta is given */
  *why = fa_args_beyond(p);
  if (status != FA_OK || *why) return status;
  if (p->family == FA_MERGE)
    fa_args_states(p, &x->states);
  else if (p->family == FA_KVCACHE)
    fa_args_cache(p, &x->a, &x->cache);
  else
    *why = fa_args_problem(p, &x->a);
  if (!*why && fa_args_is_flex(p)) fa_args_flex_problem(p, &x->flex, &x->a);
  return FA_OK;
}

fa_status fa_args_stand_in(const fa_problem *p, bool aligned, int n_processors, fa_args *out,
                           const char **why, fa_error *err) {
  const fa_status status = make_problem(p, n_processors, out, why, err);
  if (status != FA_OK || *why) return status;
  if (p->family == FA_MERGE) {
    place_states(&out->states, &out->states_g);
    return FA_OK;
  }
  place_attention(aligned, &out->a);
  place_gradients(p, &out->a, &out->g);
  if (p->family == FA_KVCACHE) place_cache(p, &out->a, &out->cache);
  if (fa_args_is_flex(p)) place_flex(&out->flex.flex);
  return FA_OK;
}

bool fa_args_supported(const fa_problem *p, bool backward, const fa_kernel_device *device, char *why,
                       size_t why_size) {
  fa_args x;
  fa_error err = {""};
  const char *clause = NULL;
  fa_status status = make_problem(p, 0, &x, &clause, &err);
  if (backward && p->family == FA_KVCACHE) clause = "the KV cache has no backward pass";
  if (status == FA_OK && !clause)
    status = fa_plan_supported(backward ? &x.backward : &x.forward, device, &err);
  snprintf(why, why_size, "%s", clause ? clause : err.text);
  fa_args_free(&x);
  return status == FA_OK && !clause;
}
