/* Speed of many rows over a cache: bench_prefill [D,Hq,Hk ...]. For each, a prefill of 16 sequences of 512 new rows
 * over 8,192 keys: with a contiguous K and V (fa_forward, the peer), and over caches of several pages; then 48 rows that
 * decode, 4 chunks of 1,024 rows, and both in one call. Prints microseconds of consecutive calls in a graph, and of
 * single calls, and how the rate is to the peer's, or to that of the two calls apart. FA_HOPPER=off: with the portable
 * kernels. */
#include "gpu/cuda/target.h"
#include "gpu/fa.h"
#include "gpu/plan/make.h"
#include "tests/bench/device.h"

#include <stdio.h>
#include <stdlib.h>

enum { KEYS = 8192, MAX_BATCH = 52, MAX_MEMORY = 9 };

typedef struct heads {
  long long d, q, kv;
} heads;

/* The first `few` of the batch have few_rows rows, the others many_rows. */
typedef struct load {
  int batch, few, few_rows, many_rows;
  int page; /* 0: a row of the cache for each; -1: no cache, fa_forward */
} load;

typedef struct call {
  fa_attention a;
  fa_inference kv;
  bool is_cache;
  CUdeviceptr workspace, memory[MAX_MEMORY];
  size_t workspace_bytes;
  int n_memory;
} call;

static void check(fa_status status, const fa_error *err) {
  if (status == FA_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

static void *keep(call *c, CUdeviceptr p) {
  c->memory[c->n_memory++] = p;
  return (void *)p;
}

/* ---- the call ---- */

static void set_sizes(const heads *h, const load *l, call *c) {
  fa_attention *a = &c->a;
  fa_attention_init(a);
  a->dtype = FA_BF16;
  a->batch = l->batch;
  a->heads_q = h->q;
  a->heads_kv = h->kv;
  a->head_dim = h->d;
  a->seqlen_q = l->many_rows;
  a->seqlen_k = KEYS;
  a->scale = 0.1;
  a->window_right = 0;
}

/* Packed where sequences differ. Returns all rows. */
static int64_t set_queries(const heads *h, const load *l, call *c) {
  fa_attention *a = &c->a;
  int32_t cu[MAX_BATCH + 1] = {0};
  for (int i = 0; i < l->batch; ++i) cu[i + 1] = cu[i] + (i < l->few ? l->few_rows : l->many_rows);
  const int64_t rows = cu[l->batch];
  if (l->few) {
    a->cu_seqlens_q = keep(c, bench_upload(cu, (size_t)l->batch + 1));
    a->total_q = rows;
  }
  const int64_t per_batch = l->few ? rows : l->many_rows;
  a->q_stride = a->o_stride = fa_strides_dense(per_batch, h->q, h->d);
  a->lse_stride = (fa_strides){h->q * per_batch, 1, per_batch};
  const size_t bytes = (size_t)(rows * h->q * h->d) * 2;
  a->q = keep(c, bench_allocate_random(bytes));
  a->o = keep(c, bench_allocate(bytes));
  a->lse = keep(c, bench_allocate((size_t)(rows * h->q) * 4));
  return rows;
}

/* Pages in an irregular order. */
static void set_pages(const load *l, call *c) {
  const int pages = KEYS / l->page, n = l->batch * pages;
  c->kv.block_table = keep(c, bench_upload_pages(n));
  c->kv.block_table_stride = c->kv.max_pages = pages;
  c->kv.page_size = l->page;
  c->kv.cache_rows = n;
}

static void set_keys(const heads *h, const load *l, call *c) {
  const size_t bytes = (size_t)(l->batch * KEYS * h->kv * h->d) * 2;
  void *k = keep(c, bench_allocate_random(bytes)), *v = keep(c, bench_allocate_random(bytes));
  if (!c->is_cache) {
    c->a.k = k;
    c->a.v = v;
    c->a.k_stride = c->a.v_stride = fa_strides_dense(KEYS, h->kv, h->d);
    return;
  }
  int32_t lengths[MAX_BATCH];
  for (int i = 0; i < l->batch; ++i) lengths[i] = KEYS;
  fa_inference_init(&c->kv);
  c->kv.cache_seqlens = keep(c, bench_upload(lengths, (size_t)l->batch));
  c->kv.cache_rows = l->batch;
  if (l->page) set_pages(l, c);
  c->kv.k_cache = k;
  c->kv.v_cache = v;
  c->kv.k_cache_stride = c->kv.v_cache_stride = fa_strides_dense(l->page ? l->page : KEYS, h->kv, h->d);
}

static void make(const void *data) {
  const call *c = data;
  fa_error err = {""};
  void *workspace = (void *)c->workspace;
  check(c->is_cache ? fa_forward_kvcache(&c->a, &c->kv, workspace, c->workspace_bytes, bench_stream(), &err)
                    : fa_forward(&c->a, workspace, c->workspace_bytes, bench_stream(), &err),
        &err);
}

/* The kernel that the device runs for it. */
static void print_kernel(const call *c) {
  static fa_plan plan;
  fa_kernel_device target;
  fa_error err = {""};
  const fa_call planned = {.kind = c->is_cache ? FA_CALL_CACHE : FA_CALL_FORWARD,
                           .a = &c->a,
                           .cache = c->is_cache ? &c->kv : NULL,
                           .n_processors = FA_PLAN_PROCESSORS};
  check(fa_cuda_target(&bench_context()->device, &target, &err), &err);
  check(fa_plan_make(&planned, &target, &plan, &err), &err);
  printf("  %s", plan.launch[0].kernel.name);
}

/* peer: microseconds that it is compared with; 0: nothing. Returns its own. */
static double bench(const heads *h, load l, const char *what, double peer) {
  call c = {.is_cache = l.page >= 0};
  fa_error err = {""};
  set_sizes(h, &l, &c);
  const int64_t rows = set_queries(h, &l, &c);
  set_keys(h, &l, &c);
  check(c.is_cache ? fa_forward_kvcache_workspace(&c.a, &c.kv, &c.workspace_bytes, &err)
                   : fa_forward_workspace(&c.a, &c.workspace_bytes, &err),
        &err);
  c.workspace = (CUdeviceptr)keep(&c, bench_allocate(c.workspace_bytes));
  const bench_times t = bench_time(make, &c);
  const double flops = 4.0 * (double)(rows * h->q * h->d) * (KEYS - 0.5 * l.many_rows);
  printf("D %3lld heads %lld/%lld  %-34s %8.1f us, alone %8.1f us, %4.0f TFLOP/s", h->d, h->q, h->kv, what,
         t.in_a_row, t.one, flops / t.in_a_row * 1e-6);
  if (peer > 0) printf(", %.3f", peer / t.in_a_row);
  print_kernel(&c);
  printf("\n");
  fflush(stdout);
  bench_free(c.memory, c.n_memory);
  return t.in_a_row;
}

static void bench_heads(const heads *h) {
  static const int pages[] = {0, 16, 64, 128, 256};
  char what[64];
  const double peer = bench(h, (load){16, 0, 0, 512, -1}, "16 x 512 rows, contiguous", 0);
  for (size_t i = 0; i < sizeof pages / sizeof *pages; ++i) {
    snprintf(what, sizeof what, pages[i] ? "16 x 512 rows, pages of %d" : "16 x 512 rows, cache rows",
             pages[i]);
    bench(h, (load){16, 0, 0, 512, pages[i]}, what, peer);
  }
  const double apart = bench(h, (load){48, 0, 0, 1, 64}, "48 x 1 rows, pages of 64", 0) +
                       bench(h, (load){4, 0, 0, 1024, 64}, "4 x 1024 rows, pages of 64", 0);
  bench(h, (load){52, 48, 1, 1024, 64}, "48 x 1 and 4 x 1024 in one call", apart);
}

int main(int argc, char **argv) {
  static const heads usual[] = {{128, 32, 8}, {64, 32, 8}, {256, 16, 4}, {128, 32, 32}};
  bench_open();
  for (size_t i = 0; argc == 1 && i < sizeof usual / sizeof *usual; ++i) bench_heads(&usual[i]);
  for (int i = 1; i < argc; ++i) {
    heads h;
    if (sscanf(argv[i], "%lld,%lld,%lld", &h.d, &h.q, &h.kv) != 3) {
      fprintf(stderr, "%s: D,Hq,Hk\n", argv[i]);
      return 2;
    }
    bench_heads(&h);
  }
  bench_close();
  return 0;
}
