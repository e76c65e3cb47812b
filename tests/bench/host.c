/* What a call costs on the host after the first of its kind: bench_host. The time from entering fa_forward, fa_backward and
 * fa_forward_kvcache to their return, in microseconds, beside what the driver takes for its part in the same run.
 *
 * Three times each: of the same call again, of a call between other tensors than any that is kept, both in batches that
 * the device's queue holds, however slow the kernels are; and of the same call in long batches, in which a device that is
 * slower than the calls come is waited for.
 *
 *   bench_host [ROWS HEADS]: of forward and backward (128 2) */
#include "gpu/fa.h"
#include "tests/bench/device.h"
#include "tests/bench/host_driver.h"
#include "tests/bench/median.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 20, LONG = 200, KEYS = 512, OTHERS = 512, STEP_BYTES = 256 };
static int64_t n_rows = 128, heads = 2;

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
  a->heads_q = a->heads_kv = heads;
  a->seqlen_q = rows;
  a->seqlen_k = keys;
  a->head_dim = a->head_dim_v = head_dim;
  a->scale = 0.1;
  a->window_right = 0;
  a->q_stride = a->o_stride = fa_strides_dense(rows, heads, head_dim);
  a->k_stride = a->v_stride = fa_strides_dense(keys, heads, head_dim);
  a->lse_stride = (fa_strides){heads * rows, 1, rows};
  a->q = floats(keys * heads * head_dim);
  a->k = floats(keys * heads * head_dim);
  a->v = floats(keys * heads * head_dim);
  a->o = floats(keys * heads * head_dim + OTHERS * STEP_BYTES / 4);
  a->lse = floats(keys * heads);
}

static void set_gradients(problem *x) {
  fa_gradients *g = &x->g;
  const int64_t n = x->a.seqlen_k * heads * x->a.head_dim;
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

static void need(fa_status status, const fa_error *err) {
  if (status == FA_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

/* ---- time ---- */

typedef struct timed {
  fa_status (*call)(problem *);
  problem *x;
  void *first_o; /* NULL: the same call each time; else where o is in turn */
  int n;
} timed;

static void make(void *data) {
  timed *t = data;
  if (t->first_o) t->x->a.o = (char *)t->first_o + (size_t)(t->n++ % OTHERS) * STEP_BYTES;
  need(t->call(t->x), &t->x->err);
}

static void wait(void) {
  bench_context()->driver->cuStreamSynchronize(bench_stream());
}

static void print(const char *name, double limit, fa_status (*call)(problem *), problem *x) {
  void *const o = x->a.o;
  timed same = {.call = call, .x = x}, others = {.call = call, .x = x, .first_o = o};
  const double again = bench_median_us(make, &same, SHORT, wait);
  const double other = bench_median_us(make, &others, SHORT, wait);
  x->a.o = o;
  printf("D %3d: %-18s %5.2f us (at most %.0f), other tensors %5.2f, in long batches %5.2f\n",
         (int)x->a.head_dim, name, again, limit, other, bench_median_us(make, &same, LONG, wait));
}

static void allocate(problem *x, fa_status status) {
  need(status, &x->err);
  x->workspace = (void *)bench_allocate(x->workspace_bytes + 1);
}

int main(int argc, char **argv) {
  static const int64_t head_dims[] = {64, 128};
  if (argc == 3) {
    n_rows = atoi(argv[1]);
    heads = atoi(argv[2]);
  }
  bench_open();
  bench_host_driver_print();
  for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; ++i) {
    problem x = {.workspace = NULL};
    set_attention(&x, head_dims[i], n_rows, n_rows);
    set_gradients(&x);
    print("fa_forward", 5, forward, &x);
    allocate(&x, fa_backward_workspace(&x.a, &x.g, &x.workspace_bytes, &x.err));
    print("fa_backward", 7, backward, &x);
    set_attention(&x, head_dims[i], 1, KEYS);
    set_cache(&x);
    allocate(&x, fa_forward_kvcache_workspace(&x.a, &x.kv, &x.workspace_bytes, &x.err));
    print("fa_forward_kvcache", 4, cache, &x);
  }
  bench_close();
  return 0;
}
