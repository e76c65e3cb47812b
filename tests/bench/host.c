/* What a call costs on the host after the first of its kind: bench_host. The time from entering fa_forward, fa_backward and
 * fa_forward_kvcache to their return, in microseconds: the median over batches of calls that the device does faster than
 * they come, or else it would be the device's. */
#include "gpu/fa.h"
#include "tests/bench/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CALLS = 200, BATCHES = 25, WARM_UP = 3, ROWS = 128, HEADS = 2, KEYS = 512 };

typedef struct problem {
  fa_attention a;
  fa_gradients g;
  fa_inference kv;
  void *workspace;
  size_t workspace_bytes;
  fa_error err;
} problem;

static void *floats(int64_t n) {
  return (void *)bench_allocate_random((size_t)n * 4);
}

static void set_attention(problem *x, int64_t head_dim, int64_t rows, int64_t keys) {
  fa_attention *a = &x->a;
  fa_attention_init(a);
  a->dtype = FA_BF16;
  a->batch = 1;
  a->heads_q = a->heads_kv = HEADS;
  a->seqlen_q = rows;
  a->seqlen_k = keys;
  a->head_dim = a->head_dim_v = head_dim;
  a->scale = 0.1;
  a->window_right = 0;
  a->q_stride = a->o_stride = fa_strides_dense(rows, HEADS, head_dim);
  a->k_stride = a->v_stride = fa_strides_dense(keys, HEADS, head_dim);
  a->lse_stride = (fa_strides){HEADS * rows, 1, rows};
  a->q = floats(keys * HEADS * head_dim);
  a->k = floats(keys * HEADS * head_dim);
  a->v = floats(keys * HEADS * head_dim);
  a->o = floats(keys * HEADS * head_dim);
  a->lse = floats(keys * HEADS);
}

static void set_gradients(problem *x) {
  fa_gradients *g = &x->g;
  const int64_t n = x->a.seqlen_k * HEADS * x->a.head_dim;
  fa_gradients_init(g);
  g->d_o = floats(n);
  g->dq = floats(n);
  g->dk = floats(n);
  g->dv = floats(n);
  g->do_stride = g->dq_stride = g->dk_stride = g->dv_stride = x->a.q_stride;
}

static void set_cache(problem *x) {
  fa_inference *kv = &x->kv;
  const int32_t length = KEYS;
  fa_inference_init(kv);
  kv->cache_rows = 1;
  kv->k_cache = (void *)x->a.k;
  kv->v_cache = (void *)x->a.v;
  kv->k_cache_stride = kv->v_cache_stride = x->a.k_stride;
  kv->cache_seqlens = (const int32_t *)bench_upload(&length, 1);
}

static fa_status forward(problem *x) {
  return fa_forward(&x->a, x->workspace, x->workspace_bytes, bench_stream(), &x->err);
}
static fa_status backward(problem *x) {
  return fa_backward(&x->a, &x->g, x->workspace, x->workspace_bytes, bench_stream(), &x->err);
}
static fa_status cache(problem *x) {
  return fa_forward_kvcache(&x->a, &x->kv, x->workspace, x->workspace_bytes, bench_stream(), &x->err);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void need(fa_status status, const fa_error *err) {
  if (status == FA_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

static double microseconds(fa_status (*call)(problem *), problem *x) {
  double times[BATCHES];
  for (int b = -WARM_UP; b < BATCHES; ++b) {
    const double begin = now();
    for (int i = 0; i < CALLS; ++i) need(call(x), &x->err);
    if (b >= 0) times[b] = (now() - begin) / CALLS;
    bench_context()->driver->cuStreamSynchronize(bench_stream());
  }
  qsort(times, BATCHES, sizeof *times, by_value);
  return times[BATCHES / 2];
}

static void allocate(problem *x, fa_status status) {
  need(status, &x->err);
  x->workspace = (void *)bench_allocate(x->workspace_bytes + 1);
}

int main(void) {
  static const int64_t head_dims[] = {64, 128};
  bench_open();
  for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; ++i) {
    problem x = {.workspace = NULL};
    set_attention(&x, head_dims[i], ROWS, ROWS);
    set_gradients(&x);
    printf("D %3d: fa_forward %.2f us", (int)head_dims[i], microseconds(forward, &x));
    allocate(&x, fa_backward_workspace(&x.a, &x.g, &x.workspace_bytes, &x.err));
    printf(", fa_backward %.2f us", microseconds(backward, &x));
    set_attention(&x, head_dims[i], 1, KEYS);
    set_cache(&x);
    allocate(&x, fa_forward_kvcache_workspace(&x.a, &x.kv, &x.workspace_bytes, &x.err));
    printf(", fa_forward_kvcache %.2f us\n", microseconds(cache, &x));
  }
  bench_close();
  return 0;
}
