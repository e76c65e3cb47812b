/* The problem and tensors of a call with a fa_flex to the arguments of gpu/fa.h. */
#include "gpu/args/problem.h"
#include "gpu/call/check.h"

fa_status fa_args_flex_make(const fa_problem *p, fa_args_flex *x, fa_error *err) {
  fa_flex_buffer buffers[FA_MAX_CAPTURES];
  _Static_assert(FA_MAX_CAPTURES == FA_FLEX_MAX_BUFFERS && FA_MAX_CAPTURE_RANK == FA_FLEX_MAX_RANK,
                 "a buffer for every capture");
  fa_flex_init(&x->flex);
  x->program = NULL;
  if (!p->score_mod && !p->mask_mod) return FA_OK;
  for (int k = 0; k < p->n_captures; ++k) {
    const fa_capture *c = &p->captures[k];
    buffers[k] = (fa_flex_buffer){
        .name = c->name, .dtype = c->dtype, .rank = c->rank, .stride = c->n_strides ? c->stride : NULL};
    for (int i = 0; i < c->rank; ++i) buffers[k].shape[i] = c->shape[i];
  }
  return fa_flex_prepare(p->score_mod, p->mask_mod, buffers, p->n_captures, &x->program, err);
}

void fa_args_flex_free(fa_args_flex *x) {
  fa_flex_free(x->program);
  x->program = NULL;
}

void fa_args_flex_problem(const fa_problem *p, fa_args_flex *x, fa_attention *a) {
  const fa_block_sparse *s = &p->block_sparse;
  fa_flex_init(&x->flex);
  x->flex.program = x->program;
  a->flex = &x->flex;
  if (!s->present) return;
  x->flex.q_block = s->q_block;
  x->flex.kv_block = s->kv_block;
  x->flex.blocks_from_mask_mod = s->source == FA_BLOCKS_MASK_MOD;
  x->flex.list_batch = x->flex.blocks_from_mask_mod ? 1 : s->list_batch;
  x->flex.list_heads = x->flex.blocks_from_mask_mod ? 1 : s->list_heads;
}

/* ---- tensors ---- */

static bool is_dense(const fa_tensor *x) {
  int64_t stride = 1;
  for (int i = x->rank - 1; i >= 0; --i) {
    if (x->shape[i] > 1 && x->stride[i] != stride) return false;
    stride *= x->shape[i];
  }
  return true;
}

static const char *check_list(const fa_flex *f, const fa_tensor *x, int rank, int64_t n_q, int64_t n_kv) {
  if (!x->data || x->dtype != FA_I32 || x->rank != rank || !is_dense(x))
    return "a block list is missing, not int32, of the wrong rank or not dense";
  if (x->shape[0] != f->list_batch || x->shape[1] != f->list_heads || x->shape[2] != n_q ||
      (rank == 4 && x->shape[3] != n_kv))
    return "a block list has another shape than the problem says";
  return NULL;
}

static const char *take_lists(const fa_tensor *x, fa_flex *f, fa_attention *a) {
  const int64_t n_q = fa_flex_n_q(a), n_kv = fa_flex_n_kv(a);
  if (!fa_flex_has_blocks(a) || f->blocks_from_mask_mod) return NULL; /* lists of nothing are no tensors */
  const char *why = check_list(f, &x[FA_T_KV_NUM_BLOCKS], 3, n_q, n_kv);
  if (!why) why = check_list(f, &x[FA_T_KV_INDICES], 4, n_q, n_kv);
  if (why) return why;
  f->kv_num_blocks = (const int32_t *)(const void *)x[FA_T_KV_NUM_BLOCKS].data;
  f->kv_indices = (const int32_t *)(const void *)x[FA_T_KV_INDICES].data;
  if (!x[FA_T_FULL_KV_NUM_BLOCKS].data) return NULL;
  why = check_list(f, &x[FA_T_FULL_KV_NUM_BLOCKS], 3, n_q, n_kv);
  if (!why) why = check_list(f, &x[FA_T_FULL_KV_INDICES], 4, n_q, n_kv);
  if (why) return why;
  f->full_kv_num_blocks = (const int32_t *)(const void *)x[FA_T_FULL_KV_NUM_BLOCKS].data;
  f->full_kv_indices = (const int32_t *)(const void *)x[FA_T_FULL_KV_INDICES].data;
  return NULL;
}

/* A buffer or its gradient; one without axes is a tensor of one element. */
static const char *check_buffer(const fa_capture *c, const fa_tensor *x) {
  if (!x->data || x->dtype != c->dtype)
    return "a buffer or its gradient is missing or has another dtype than the problem says";
  if (fa_tensor_count(x) != fa_flex_captured_count(c))
    return "a buffer or its gradient has another size than the problem says";
  return NULL;
}

static const char *check_strides(const fa_capture *c, const fa_tensor *x) {
  int64_t stride[FA_MAX_CAPTURE_RANK];
  fa_capture_strides(c, stride);
  for (int i = 0; i < c->rank; ++i)
    if (c->shape[i] > 1 && x->stride[i] != stride[i])
      return "a buffer has other strides than the problem says";
  return NULL;
}

const char *fa_args_flex_tensors(const fa_problem *p, const fa_tensors *t, fa_args_flex *x, fa_attention *a) {
  const char *why = NULL;
  fa_args_flex_problem(p, x, a);
  for (int k = 0; !why && x->program && k < p->n_captures; ++k) {
    why = check_buffer(&p->captures[k], &t->t[FA_T_BUFFER_0 + k]);
    if (!why) why = check_strides(&p->captures[k], &t->t[FA_T_BUFFER_0 + k]);
    x->flex.buffer[k] = t->t[FA_T_BUFFER_0 + k].data;
  }
  return why ? why : take_lists(t->t, &x->flex, a);
}

const char *fa_args_flex_gradients(const fa_problem *p, const fa_tensors *t, fa_gradients *g) {
  const char *why = NULL;
  for (int k = 0; !why && fa_args_is_flex(p) && k < p->n_captures; ++k) {
    const fa_tensor *x = &t->t[FA_T_DBUFFER_0 + k];
    if (!x->data) continue;
    why = check_buffer(&p->captures[k], x);
    if (!why && !is_dense(x)) why = "the gradient of a buffer is not dense";
    g->dbuffer[k] = x->data;
  }
  return why;
}
