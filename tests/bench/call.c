/* Whole calls of libfa_attention.so for cudnn.py and the other scripts here. Libraries are opened by path, so that several
 * builds can be timed in one process; all must match this gpu/fa.h. Tensors are dense [batch, seqlen, heads,
 * head_dim], on the device, with as many keys as rows. Functions return NULL, or an error message that
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
  void (*flex_init)(fa_flex *);
  fa_status (*flex_prepare)(const char *, const char *, const fa_flex_buffer *, int, fa_flex_program **,
                            fa_error *);
  fa_status (*flex_blocks)(const fa_attention *, const fa_flex_block_lists *, void *, size_t, void *,
                           fa_error *);
  fa_status (*flex_blocks_workspace)(const fa_attention *, size_t *, fa_error *);
} library;

enum { FLEX_BLOCK = 128 };

/* The same fields as class Call in tests/bench/library.py. */
typedef struct call {
  int64_t batch, seqlen, heads, head_dim, causal, deterministic;
  double dropout_p;
  const void *q, *k, *v, *d_o;
  void *o, *lse, *dq, *dk, *dv, *workspace;
  size_t workspace_bytes;
  void *stream;
  double scale; /* 0: the default */
  int64_t e4m3; /* q, k and v are, with descales of 1 */
  /* NULL, or [batch + 1]: packed sequences, of both rows and keys; seqlen is the longest's. */
  const int32_t *cu_seqlens;
  int64_t total;       /* tokens of those */
  int64_t heads_kv;    /* 0: as many as heads */
  int64_t window_left; /* keys before a row's own that it sees; 0: all */
  int64_t head_dim_v;  /* 0: head_dim */
  int64_t dtype;       /* fa_dtype */
  int64_t linear_dropout;
  const void *bias;               /* NULL, or [batch or 1, heads, seqlen, seqlen] */
  void *dbias;                    /* NULL, or as bias */
  int64_t bias_of_each;           /* whether a sequence has its own */
  const fa_flex_program *program; /* NULL, or of bench_flex_prepare */
  const void *buffer;             /* the program's */
  void *dbuffer;
  /* NULL, or lists of blocks of FLEX_BLOCK rows and keys: counts and indices of partial and of full ones. */
  int32_t *lists[4];
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
  *(void **)&l->flex_init = find(handle, "fa_flex_init");
  *(void **)&l->flex_prepare = find(handle, "fa_flex_prepare");
  *(void **)&l->flex_blocks = find(handle, "fa_flex_blocks");
  *(void **)&l->flex_blocks_workspace = find(handle, "fa_flex_blocks_workspace");
  const bool complete = l->attention_init && l->gradients_init && l->backward_workspace && l->forward &&
                        l->backward && l->flex_init && l->flex_prepare && l->flex_blocks &&
                        l->flex_blocks_workspace;
  return complete ? NULL : said.text;
}

static void describe_packed(const call *c, fa_attention *a) {
  a->cu_seqlens_q = a->cu_seqlens_k = c->cu_seqlens;
  a->total_q = a->total_k = c->total;
  a->q_stride.batch = a->k_stride.batch = a->v_stride.batch = a->o_stride.batch = 0;
  a->lse_stride = (fa_strides){.batch = 0, .row = 1, .head = c->total};
}

static fa_strides dense(const call *c, int64_t heads, int64_t columns) {
  return (fa_strides){.batch = c->seqlen * heads * columns, .row = heads * columns, .head = columns};
}

static void describe_bias(const call *c, fa_attention *a) {
  const int64_t one = c->seqlen * c->seqlen;
  a->bias = c->bias;
  a->bias_stride = (fa_strides){.batch = c->bias_of_each ? c->heads * one : 0, .row = c->seqlen, .head = one};
}

static void describe_flex(const library *l, const call *c, fa_flex *f) {
  l->flex_init(f);
  f->program = c->program;
  f->buffer[0] = c->buffer;
  if (!c->lists[0]) return;
  f->q_block = f->kv_block = FLEX_BLOCK;
  f->kv_num_blocks = c->lists[0], f->kv_indices = c->lists[1];
  f->full_kv_num_blocks = c->lists[2], f->full_kv_indices = c->lists[3];
}

/* The flex part is written to *f, which a points to. */
static void describe(const library *l, const call *c, fa_attention *a, fa_flex *f) {
  const int64_t heads_kv = c->heads_kv ? c->heads_kv : c->heads;
  const int64_t head_dim_v = c->head_dim_v ? c->head_dim_v : c->head_dim;
  l->attention_init(a);
  a->dtype = (fa_dtype)c->dtype;
  a->e4m3 = c->e4m3;
  a->batch = c->batch;
  a->heads_q = c->heads, a->heads_kv = heads_kv;
  a->seqlen_q = a->seqlen_k = c->seqlen;
  a->head_dim = c->head_dim, a->head_dim_v = head_dim_v;
  a->q = c->q, a->k = c->k, a->v = c->v, a->o = c->o, a->lse = c->lse;
  a->q_stride = dense(c, c->heads, c->head_dim), a->o_stride = dense(c, c->heads, head_dim_v);
  a->k_stride = dense(c, heads_kv, c->head_dim), a->v_stride = dense(c, heads_kv, head_dim_v);
  a->lse_stride = (fa_strides){.batch = c->heads * c->seqlen, .row = 1, .head = c->seqlen};
  a->scale = c->scale != 0 ? c->scale : 1 / sqrt((double)c->head_dim);
  a->deterministic = c->deterministic;
  a->dropout_p = c->dropout_p;
  if (c->linear_dropout) a->dropout_scheme = FA_DROPOUT_LINEAR;
  if (c->causal) a->window_right = 0;
  if (c->window_left) a->window_left = c->window_left;
  if (c->cu_seqlens) describe_packed(c, a);
  if (c->bias) describe_bias(c, a);
  if (!c->program && !c->lists[0]) return;
  describe_flex(l, c, f);
  a->flex = f;
}

static void describe_gradients(const library *l, const call *c, const fa_attention *a, fa_gradients *g) {
  l->gradients_init(g);
  g->d_o = c->d_o, g->dq = c->dq, g->dk = c->dk, g->dv = c->dv;
  g->do_stride = a->o_stride, g->dq_stride = a->q_stride, g->dk_stride = a->k_stride,
  g->dv_stride = a->v_stride;
  g->dbias = c->dbias, g->dbias_stride = a->bias_stride;
  g->dbuffer[0] = c->dbuffer;
}

/* A program with a buffer of one axis, of n elements; name NULL: without. */
EXPORT const char *bench_flex_prepare(const library *l, const char *score_mod, const char *mask_mod,
                                      const char *name, int64_t dtype, int64_t n, fa_flex_program **out) {
  const fa_flex_buffer buffer = {.name = name, .dtype = (fa_dtype)dtype, .rank = 1, .shape = {n}};
  return l->flex_prepare(score_mod, mask_mod, &buffer, name ? 1 : 0, out, &said) == FA_OK ? NULL : said.text;
}

/* Writes the call's lists, of its mask_mod, once for all sequences and heads. */
EXPORT const char *bench_flex_blocks(const library *l, const call *c) {
  fa_attention a;
  fa_flex f;
  describe(l, c, &a, &f);
  f.kv_num_blocks = f.kv_indices = f.full_kv_num_blocks = f.full_kv_indices = NULL;
  const fa_flex_block_lists out = {c->lists[0], c->lists[1], c->lists[2], c->lists[3]};
  size_t bytes;
  if (l->flex_blocks_workspace(&a, &bytes, &said) != FA_OK) return said.text;
  if (bytes > c->workspace_bytes) return "block lists need a larger workspace";
  return l->flex_blocks(&a, &out, c->workspace, c->workspace_bytes, c->stream, &said) == FA_OK ? NULL
                                                                                               : said.text;
}

EXPORT const char *bench_forward(const library *l, const call *c) {
  fa_attention a;
  fa_flex f;
  describe(l, c, &a, &f);
  return l->forward(&a, c->workspace, c->workspace_bytes, c->stream, &said) == FA_OK ? NULL : said.text;
}

/* Bytes of workspace that bench_backward needs. */
EXPORT const char *bench_backward_workspace(const library *l, const call *c, size_t *bytes) {
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  describe(l, c, &a, &f);
  describe_gradients(l, c, &a, &g);
  return l->backward_workspace(&a, &g, bytes, &said) == FA_OK ? NULL : said.text;
}

EXPORT const char *bench_backward(const library *l, const call *c) {
  fa_attention a;
  fa_gradients g;
  fa_flex f;
  describe(l, c, &a, &f);
  describe_gradients(l, c, &a, &g);
  return l->backward(&a, &g, c->workspace, c->workspace_bytes, c->stream, &said) == FA_OK ? NULL : said.text;
}
