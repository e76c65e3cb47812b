/* Speed of reading a cache when one or a few rows attend to it: bench_kv [row ...], where a row is
 * D,Hq,Hk,S,B[,page[,splits[,rows[,layout[,bits[,new]]]]]]. page 0: no pages; splits 0: chosen automatically; layout 1:
 * each head's keys are contiguous; D 576: V is the first 512 columns of K; bits 8: the cache is of e4m3, 4: of e2m1 with an
 * e4m3 scale to 16 columns, 16 [16]: of bf16; new: so many of the S keys are appended by the call, which rotates them and the
 * queries. Before them, what a copy reads and writes. Without
 * arguments, the rows of docs/notes/performance.md, and two of docs/notes/results.md. Prints GB/s of keys and values: of one call between two events (median), and of
 * consecutive calls in a graph, which excludes the cost of submitting them; then TFLOP/s of those, and how much of the
 * speed it is that an H100's memory and tensor cores allow. */
#include "cases/tensors/nibbles.h"
#include "gpu/cuda/target.h"
#include "gpu/fa.h"
#include "gpu/plan/make.h"
#include "tests/bench/device.h"

#include <stdio.h>
#include <stdlib.h>

/* Of an H100: a large product of 16-bit matrices, and what copies of large tensors read and write. */
static const double TENSOR_CORE_TFLOPS = 790, MEMORY_GB = 3020;

typedef struct row {
  int64_t d, hq, hk, s, b, page, splits, rows, layout, bits, n_new;
} row;

/* Sets every length to the whole row, and the pages to an irregular order. */
static void set_keys(const row *r, fa_attention *a, fa_inference *kv, CUdeviceptr ints[2]) {
  const int64_t pages = r->page ? (r->s + r->page - 1) / r->page : 0, n = r->b * pages;
  int32_t *lengths = malloc((size_t)r->b * 4);
  if (!lengths) exit(1);
  for (int64_t i = 0; i < r->b; ++i) lengths[i] = (int32_t)(r->s - r->n_new);
  ints[0] = bench_upload(lengths, (size_t)r->b);
  ints[1] = bench_upload_pages(n);
  free(lengths);
  kv->cache_seqlens = (const int32_t *)ints[0];
  kv->cache_rows = r->page ? n : r->b;
  a->seqlen_k = r->s;
  if (!r->page) return;
  kv->block_table = (const int32_t *)ints[1];
  kv->block_table_stride = kv->max_pages = pages;
  kv->page_size = r->page;
}

enum { N_NEW_TENSORS = 4 };

/* New keys and values, and the rotation of all columns at every position. */
static void set_new(const row *r, fa_inference *kv, CUdeviceptr at[N_NEW_TENSORS]) {
  if (!r->n_new) return;
  const size_t bytes[N_NEW_TENSORS] = {(size_t)(r->b * r->n_new * r->hk * r->d) * 2,
                                       (size_t)(r->b * r->n_new * r->hk * r->d) * 2, (size_t)(r->s * r->d),
                                       (size_t)(r->s * r->d)};
  for (int i = 0; i < N_NEW_TENSORS; ++i) at[i] = bench_allocate_random(bytes[i]);
  kv->n_new = r->n_new;
  kv->k_new = (const void *)at[0];
  kv->v_new = (const void *)at[1];
  kv->k_new_stride = kv->v_new_stride = fa_strides_dense(r->n_new, r->hk, r->d);
  kv->rotary_cos = (const void *)at[2];
  kv->rotary_sin = (const void *)at[3];
  kv->rotary_rows = r->s;
  kv->rotary_dim = r->d;
}

static bool is_mla(const row *r) {
  return r->d == 576;
}

static bool is_e2m1(const row *r) {
  return r->bits == 4;
}

/* Bytes of a number of the cache, scales included. */
static double stored_bytes(const row *r) {
  return (double)r->bits / 8 + (is_e2m1(r) ? 1.0 / FA_SCALED_BLOCK : 0);
}

static void set_problem(const row *r, fa_attention *a, fa_inference *kv) {
  fa_attention_init(a);
  fa_inference_init(kv);
  a->dtype = FA_BF16;
  a->batch = r->b;
  a->heads_q = r->hq;
  a->heads_kv = r->hk;
  a->seqlen_q = r->rows;
  a->head_dim = r->d;
  a->scale = 0.1;
  a->window_right = 0;
  a->q_stride = fa_strides_dense(r->rows, r->hq, r->d);
  a->head_dim_v = is_mla(r) ? 512 : r->d;
  a->o_stride = fa_strides_dense(r->rows, r->hq, a->head_dim_v);
  kv->v_in_k = is_mla(r);
  a->lse_stride = (fa_strides){r->hq * r->rows, 1, r->rows};
  kv->splits = r->splits;
  kv->quantized = r->bits < 16;
  if (is_e2m1(r)) kv->cache_dtype = FA_E2M1;
}

typedef struct call {
  fa_attention a;
  fa_inference kv;
  CUdeviceptr workspace;
  size_t workspace_bytes;
} call;

static void make_call(const void *data) {
  const call *c = data;
  fa_error err = {""};
  if (fa_forward_kvcache(&c->a, &c->kv, (void *)c->workspace, c->workspace_bytes, bench_stream(), &err) ==
      FA_OK)
    return;
  fprintf(stderr, "%s\n", err.text);
  exit(1);
}

/* us: of a call that reads so many KB. */
static void print_limits(const row *r, double us, double kb) {
  const double columns = is_mla(r) ? 576 + 512 : 2.0 * (double)r->d;
  const double mflop = 2.0 * columns * (double)(r->hq * r->rows * r->s * r->b) * 1e-6;
  const double memory_us = kb / MEMORY_GB, cores_us = mflop / TENSOR_CORE_TFLOPS;
  printf("  %4.0f TFLOP/s, %.2f of what %s allows", mflop / us,
         (memory_us > cores_us ? memory_us : cores_us) / us,
         memory_us > cores_us ? "memory" : "tensor cores");
}

/* Of the kernels that the library chooses on this device. */
static void make_plan(const call *c, fa_plan *plan) {
  fa_kernel_device target;
  fa_error err = {""};
  const fa_call planned = {
      .kind = FA_CALL_CACHE, .a = &c->a, .cache = &c->kv, .n_processors = FA_PLAN_PROCESSORS};
  if (fa_cuda_target(&bench_context()->device, &target, &err) == FA_OK &&
      fa_plan_make(&planned, &target, plan, &err) == FA_OK)
    return;
  fprintf(stderr, "%s\n", err.text);
  exit(1);
}

static void bench(const row *r) {
  call c = {.workspace = 0};
  fa_error err = {""};
  CUdeviceptr ints[2], new_tensors[N_NEW_TENSORS];
  set_problem(r, &c.a, &c.kv);
  set_keys(r, &c.a, &c.kv, ints);
  set_new(r, &c.kv, new_tensors);
  const int64_t slots = r->page ? r->page : r->s, all = c.kv.cache_rows * slots * r->hk * r->d;
  const int64_t units = is_e2m1(r) ? r->d / 2 : r->d; /* of a key in what strides count */
  const size_t cache_bytes = (size_t)(all * r->bits / 8),
               q_bytes = (size_t)(r->b * r->rows * r->hq * r->d) * 2;
  const CUdeviceptr k = bench_allocate_random(cache_bytes), v = bench_allocate_random(cache_bytes);
  const CUdeviceptr q = bench_allocate_random(q_bytes), o = bench_allocate(q_bytes),
                    lse = bench_allocate(q_bytes);
  c.kv.k_cache = (void *)k;
  c.kv.v_cache = (void *)v;
  c.a.q = (const void *)q;
  c.a.o = (void *)o;
  c.a.lse = (float *)lse;
  c.kv.k_cache_stride = fa_strides_dense(slots, r->hk, units);
  if (r->layout) c.kv.k_cache_stride = (fa_strides){slots * r->hk * units, units, slots * units};
  c.kv.v_cache_stride = c.kv.k_cache_stride;
  CUdeviceptr scales[2] = {0, 0};
  for (int i = 0; i < 2 && is_e2m1(r); ++i) scales[i] = bench_allocate_random((size_t)(all / FA_SCALED_BLOCK));
  c.kv.k_scales = (const uint8_t *)scales[0];
  c.kv.v_scales = (const uint8_t *)scales[1];
  c.kv.k_scales_stride = c.kv.v_scales_stride = fa_strides_dense(slots, r->hk, r->d / FA_SCALED_BLOCK);

  fa_plan plan;
  if (fa_forward_kvcache_workspace(&c.a, &c.kv, &c.workspace_bytes, &err) != FA_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
  make_plan(&c, &plan);
  c.workspace = bench_allocate(c.workspace_bytes);
  const bench_times t = bench_time(make_call, &c);
  const double gb = (is_mla(r) ? 1.0 : 2.0) * (double)(r->b * r->s * r->hk * r->d) * stored_bytes(r) * 1e-3;
  printf("D %3d heads %d/%d S %6d B %2d page %3d rows %d new %d %s %2d bits splits %3d: one %8.1f us %5.0f GB/s, in "
         "a row "
         "%8.1f us "
         "%5.0f GB/s",
         (int)r->d, (int)r->hq, (int)r->hk, (int)r->s, (int)r->b, (int)r->page, (int)r->rows, (int)r->n_new,
         r->layout ? "BHSD" : "BSHD", (int)r->bits, plan.n_splits, t.one, gb / t.one, t.in_a_row,
         gb / t.in_a_row);
  print_limits(r, t.in_a_row, gb);
  printf("  %s\n", plan.launch[0].kernel.name);
  fflush(stdout);
  const CUdeviceptr used[] = {k, v, q, o, lse, c.workspace, ints[0], ints[1]};
  bench_free(used, sizeof used / sizeof *used);
  bench_free(scales, is_e2m1(r) ? 2 : 0);
  bench_free(new_tensors, r->n_new ? N_NEW_TENSORS : 0);
}

static row parse(const char *text) {
  row r = {.rows = 1};
  long long x[11] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 16, 0};
  if (sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld", &x[0], &x[1], &x[2], &x[3], &x[4],
             &x[5], &x[6], &x[7], &x[8], &x[9], &x[10]) < 5) {
    fprintf(stderr, "%s: D,Hq,Hk,S,B[,page[,splits[,rows[,layout[,bits[,new]]]]]]\n", text);
    exit(2);
  }
  r = (row){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8], x[9], x[10]};
  if (r.bits == 4 || r.bits == 8 || r.bits == 16) return r;
  fprintf(stderr, "%s: bits are 4, 8 or 16\n", text);
  exit(2);
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"128,32,8,8192,16,0,0,1,0,8",
                                      "128,32,8,131072,16,0,0,1,0,8",
                                      "128,32,8,8192,1",
                                      "128,32,8,8192,16",
                                      "64,32,32,8192,1",
                                      "64,32,32,8192,16",
                                      "128,32,8,131072,1",
                                      "128,32,8,131072,16",
                                      "64,32,32,131072,1",
                                      "128,32,8,8192,16,256",
                                      "64,32,32,8192,16,256",
                                      "128,32,8,8192,16,16",
                                      "128,32,8,8192,1,256",
                                      "128,32,8,131072,1,256",
                                      "256,16,4,8192,16",
                                      "128,32,8,8192,16,0,0,8",
                                      "576,128,1,8192,64,64",
                                      "576,128,1,8192,128,64,0,2",
                                      "576,64,1,8192,64,64",
                                      "576,16,1,8192,64,64",
                                      "576,128,1,8192,1,64",
                                      "576,128,1,32768,4,64"};
  bench_open();
  printf("a copy of 2 GiB reads and writes %.0f GB/s\n", bench_copy_gb());
  for (int i = 1; i < argc || (argc == 1 && i <= (int)(sizeof usual / sizeof *usual)); ++i) {
    const row r = parse(argc == 1 ? usual[i - 1] : argv[i]);
    bench(&r);
  }
  bench_close();
  return 0;
}
