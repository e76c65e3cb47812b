/* Whole calls of libfa_attention.so for tests/bench/cudnn.py and eight.py. Libraries are opened by path, so that several
 * builds can be timed in one process; all must match this gpu/fa.h. Tensors are dense [batch, seqlen, heads,
 * head_dim], bf16 or e4m3, on the device, with as many keys as rows. Functions return NULL, or an error message that
 * is valid until the next call. */
#include "gpu/fa.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct library {
  void (*attention_init)(fa_attention *);
  void (*gradients_init)(fa_gradients *);
  fa_status (*backward_workspace)(const fa_attention *, const fa_gradients *, size_t *, fa_error *);
  fa_status (*forward)(const fa_attention *, void *, size_t, void *, fa_error *);
  fa_status (*backward)(const fa_attention *, const fa_gradients *, void *, size_t, void *, fa_error *);
} library;

/* The same fields as class Call in tests/bench/cudnn.py. */
typedef struct call {
  int64_t batch, seqlen, heads, head_dim, causal, deterministic;
  double dropout_p;
  const void *q, *k, *v, *d_o;
  void *o, *lse, *dq, *dk, *dv, *workspace;
  size_t workspace_bytes;
  void *stream;
  double scale; /* 0: the default */
  int64_t e4m3; /* q, k and v are, with descales of 1 */
  const int32_t *cu_seqlens; /* NULL, or [batch + 1]: packed sequences, of both rows and keys; seqlen is the longest's */
  int64_t total;             /* tokens of those */
} call;

static fa_error said;

static void *find(void *handle, const char *name) {
  void *found = dlsym(handle, name);
  if (!found) snprintf(said.text, sizeof said.text, "%s", dlerror());
  return found;
}

EXPORT const char *bench_open(const char *path, library **out) {
  /* Deep binding: a library must not use the functions of another build of itself. */
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  library *l = *out = calloc(1, sizeof *l);
  if (!l) return "out of memory";
  if (!handle) return dlerror();
  *(void **)&l->attention_init = find(handle, "fa_attention_init");
  *(void **)&l->gradients_init = find(handle, "fa_gradients_init");
  *(void **)&l->backward_workspace = find(handle, "fa_backward_workspace");
  *(void **)&l->forward = find(handle, "fa_forward");
  *(void **)&l->backward = find(handle, "fa_backward");
  const bool complete =
      l->attention_init && l->gradients_init && l->backward_workspace && l->forward && l->backward;
  return complete ? NULL : said.text;
}

static void describe_packed(const call *c, fa_attention *a) {
  a->cu_seqlens_q = a->cu_seqlens_k = c->cu_seqlens;
  a->total_q = a->total_k = c->total;
  a->q_stride.batch = a->k_stride.batch = a->v_stride.batch = a->o_stride.batch = 0;
  a->lse_stride = (fa_strides){.batch = 0, .row = 1, .head = c->total};
}

static void describe(const library *l, const call *c, fa_attention *a) {
  l->attention_init(a);
  a->dtype = FA_BF16;
  a->e4m3 = c->e4m3;
  a->batch = c->batch;
  a->heads_q = a->heads_kv = c->heads;
  a->seqlen_q = a->seqlen_k = c->seqlen;
  a->head_dim = c->head_dim;
  a->q = c->q, a->k = c->k, a->v = c->v, a->o = c->o, a->lse = c->lse;
  a->q_stride = a->k_stride = a->v_stride = a->o_stride = (fa_strides){
      .batch = c->seqlen * c->heads * c->head_dim, .row = c->heads * c->head_dim, .head = c->head_dim};
  a->lse_stride = (fa_strides){.batch = c->heads * c->seqlen, .row = 1, .head = c->seqlen};
  a->scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->head_dim);
  a->deterministic = c->deterministic;
  a->dropout_p = c->dropout_p;
  if (c->causal) a->window_right = 0;
  if (c->cu_seqlens) describe_packed(c, a);
}

static void describe_gradients(const library *l, const call *c, const fa_attention *a, fa_gradients *g) {
  l->gradients_init(g);
  g->d_o = c->d_o, g->dq = c->dq, g->dk = c->dk, g->dv = c->dv;
  g->do_stride = g->dq_stride = g->dk_stride = g->dv_stride = a->q_stride;
}

EXPORT const char *bench_forward(const library *l, const call *c) {
  fa_attention a;
  describe(l, c, &a);
  return l->forward(&a, NULL, 0, c->stream, &said) == FA_OK ? NULL : said.text;
}

/* Bytes of workspace that bench_backward needs. */
EXPORT const char *bench_backward_workspace(const library *l, const call *c, size_t *bytes) {
  fa_attention a;
  fa_gradients g;
  describe(l, c, &a);
  describe_gradients(l, c, &a, &g);
  return l->backward_workspace(&a, &g, bytes, &said) == FA_OK ? NULL : said.text;
}

EXPORT const char *bench_backward(const library *l, const call *c) {
  fa_attention a;
  fa_gradients g;
  describe(l, c, &a);
  describe_gradients(l, c, &a, &g);
  return l->backward(&a, &g, c->workspace, c->workspace_bytes, c->stream, &said) == FA_OK ? NULL : said.text;
}
