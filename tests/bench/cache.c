/* Speed of reading a cache when one or a few rows attend to it: bench_kv [row ...], where a row is
 * D,Hq,Hk,S,B[,page[,splits[,rows[,layout]]]]. page 0: no pages; splits 0: chosen automatically; layout 1:
 * each head's keys are contiguous. Without arguments, the rows of docs/notes/performance.md. Prints GB/s of keys
 * and values: of one call between two events (median), and of consecutive calls in a graph, which excludes
 * the cost of submitting them. */
#include "gpu/cuda_backend/context.h"
#include "gpu/fa.h"
#include "gpu/plan/make.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SINGLE = 31, BATCHES = 7, IN_A_ROW = 20, BLOCK_BYTES = 1 << 25 };

typedef struct row {
  int64_t d, hq, hk, s, b, page, splits, rows, layout;
} row;

static const fa_cuda_driver *driver;
static char *block; /* random elements */

/* Functions of the driver that the library itself does not use. */
static struct {
  CUresult (*create_stream)(CUstream *, unsigned);
  CUresult (*begin)(CUstream, CUstreamCaptureMode);
  CUresult (*end)(CUstream, CUgraph *);
  CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
  CUresult (*launch)(CUgraphExec, CUstream);
  CUresult (*destroy)(CUgraphExec);
} graphs;
static CUstream stream;

static void must(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, (int)code);
  exit(1);
}

static CUdeviceptr allocate(size_t bytes) {
  CUdeviceptr p = 0;
  must(driver->cuMemAlloc(&p, bytes ? bytes : 16), "cuMemAlloc");
  return p;
}

/* Allocates device memory full of numbers between -2 and 2. */
static CUdeviceptr allocate_random(size_t bytes) {
  const CUdeviceptr p = allocate(bytes);
  for (size_t at = 0; at < bytes; at += BLOCK_BYTES)
    must(driver->cuMemcpyHtoD(p + at, block, bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES),
         "cuMemcpyHtoD");
  return p;
}

static CUdeviceptr upload(const int32_t *from, size_t n) {
  const CUdeviceptr p = allocate(n * 4);
  must(driver->cuMemcpyHtoD(p, from, n * 4), "cuMemcpyHtoD");
  return p;
}

/* Sets every length to the whole row, and the pages to an irregular order. */
static void set_keys(const row *r, fa_attention *a, fa_inference *kv, CUdeviceptr ints[2]) {
  const int64_t pages = r->page ? (r->s + r->page - 1) / r->page : 0, n = r->b * pages;
  int32_t *lengths = malloc((size_t)r->b * 4), *table = malloc((size_t)(n ? n : 1) * 4);
  if (!lengths || !table) exit(1);
  for (int64_t i = 0; i < r->b; ++i) lengths[i] = (int32_t)r->s;
  for (int64_t i = 0; i < n; ++i) table[i] = (int32_t)i;
  uint64_t x = 1;
  for (int64_t i = n - 1; i > 0; --i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const int64_t j = (int64_t)((x >> 33) % (uint64_t)(i + 1));
    const int32_t t = table[i];
    table[i] = table[j];
    table[j] = t;
  }
  ints[0] = upload(lengths, (size_t)r->b);
  ints[1] = upload(table, (size_t)n);
  free(lengths);
  free(table);
  kv->cache_seqlens = (const int32_t *)ints[0];
  kv->cache_rows = r->page ? n : r->b;
  a->seqlen_k = r->s;
  if (!r->page) return;
  kv->block_table = (const int32_t *)ints[1];
  kv->block_table_stride = kv->max_pages = pages;
  kv->page_size = r->page;
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
  a->q_stride = a->o_stride = fa_strides_dense(r->rows, r->hq, r->d);
  a->lse_stride = (fa_strides){r->hq * r->rows, 1, r->rows};
  kv->splits = r->splits;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

typedef struct call {
  fa_attention a;
  fa_inference kv;
  CUdeviceptr workspace;
  size_t workspace_bytes;
  CUgraphExec in_a_row;
} call;

static void make_call(const call *c) {
  fa_error err = {""};
  if (fa_forward_kvcache(&c->a, &c->kv, (void *)c->workspace, c->workspace_bytes, stream, &err) == FA_OK)
    return;
  fprintf(stderr, "%s\n", err.text);
  exit(1);
}

/* A graph of IN_A_ROW calls. */
static void capture(call *c) {
  CUgraph graph = NULL;
  must(graphs.begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  for (int i = 0; i < IN_A_ROW; ++i) make_call(c);
  must(graphs.end(stream, &graph), "cuStreamEndCapture");
  must(graphs.instantiate(&c->in_a_row, graph, 0), "cuGraphInstantiate");
}

/* Microseconds per call: of a single one, or of those in the graph. */
static double time_call(const call *c, CUevent events[2], bool one) {
  float ms = 0;
  must(driver->cuEventRecord(events[0], stream), "cuEventRecord");
  if (one)
    make_call(c);
  else
    must(graphs.launch(c->in_a_row, stream), "cuGraphLaunch");
  must(driver->cuEventRecord(events[1], stream), "cuEventRecord");
  must(driver->cuEventSynchronize(events[1]), "cuEventSynchronize");
  must(driver->cuEventElapsedTime(&ms, events[0], events[1]), "cuEventElapsedTime");
  return 1000.0 * ms / (one ? 1 : IN_A_ROW);
}

static void open_graphs(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  if (!lib) exit(77);
  *(void **)&graphs.create_stream = dlsym(lib, "cuStreamCreate");
  *(void **)&graphs.begin = dlsym(lib, "cuStreamBeginCapture_v2");
  *(void **)&graphs.end = dlsym(lib, "cuStreamEndCapture");
  *(void **)&graphs.instantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
  *(void **)&graphs.launch = dlsym(lib, "cuGraphLaunch");
  *(void **)&graphs.destroy = dlsym(lib, "cuGraphExecDestroy");
  must(graphs.create_stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void bench(const row *r, CUevent events[2]) {
  call c = {.in_a_row = NULL};
  fa_error err = {""};
  CUdeviceptr ints[2];
  set_problem(r, &c.a, &c.kv);
  set_keys(r, &c.a, &c.kv, ints);
  const int64_t slots = r->page ? r->page : r->s, all = c.kv.cache_rows * slots * r->hk * r->d;
  const size_t cache_bytes = (size_t)all * 2, q_bytes = (size_t)(r->b * r->rows * r->hq * r->d) * 2;
  const CUdeviceptr k = allocate_random(cache_bytes), v = allocate_random(cache_bytes);
  const CUdeviceptr q = allocate_random(q_bytes), o = allocate(q_bytes), lse = allocate(q_bytes);
  c.kv.k_cache = (void *)k;
  c.kv.v_cache = (void *)v;
  c.a.q = (const void *)q;
  c.a.o = (void *)o;
  c.a.lse = (float *)lse;
  c.kv.k_cache_stride = fa_strides_dense(slots, r->hk, r->d);
  if (r->layout) c.kv.k_cache_stride = (fa_strides){slots * r->hk * r->d, r->d, slots * r->d};
  c.kv.v_cache_stride = c.kv.k_cache_stride;

  fa_plan plan;
  const fa_call planned = {
      .kind = FA_CALL_CACHE, .a = &c.a, .cache = &c.kv, .n_processors = FA_PLAN_PROCESSORS};
  if (fa_forward_kvcache_workspace(&c.a, &c.kv, &c.workspace_bytes, &err) != FA_OK ||
      fa_plan_make(&planned, NULL, &plan, &err) != FA_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(1);
  }
  c.workspace = allocate(c.workspace_bytes);
  double one[SINGLE], many[BATCHES];
  for (int i = 0; i < 5; ++i) time_call(&c, events, true); /* loads the kernels before capture */
  capture(&c);
  double warm = 0; /* clocks rise under load */
  for (int i = 0; i < 200 && warm < 50e3; ++i) warm += time_call(&c, events, false) * IN_A_ROW;
  for (int i = 0; i < SINGLE; ++i) one[i] = time_call(&c, events, true);
  for (int i = 0; i < BATCHES; ++i) many[i] = time_call(&c, events, false);
  graphs.destroy(c.in_a_row);
  qsort(one, SINGLE, sizeof *one, by_value);
  qsort(many, BATCHES, sizeof *many, by_value);
  const double gb = 2.0 * (double)(r->b * r->s * r->hk * r->d) * 2 * 1e-3;
  printf("D %3d heads %d/%d S %6d B %2d page %3d rows %d %s splits %3d: one %8.1f us %5.0f GB/s, in a row "
         "%8.1f us "
         "%5.0f GB/s  %s\n",
         (int)r->d, (int)r->hq, (int)r->hk, (int)r->s, (int)r->b, (int)r->page, (int)r->rows,
         r->layout ? "BHSD" : "BSHD", plan.n_splits, one[SINGLE / 2], gb / one[SINGLE / 2], many[BATCHES / 2],
         gb / many[BATCHES / 2], plan.launch[0].kernel.name);
  fflush(stdout);
  const CUdeviceptr used[] = {k, v, q, o, lse, c.workspace, ints[0], ints[1]};
  for (size_t i = 0; i < sizeof used / sizeof *used; ++i) driver->cuMemFree(used[i]);
}

static row parse(const char *text) {
  row r = {.rows = 1};
  long long x[9] = {0, 0, 0, 0, 0, 0, 0, 1, 0};
  if (sscanf(text, "%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld,%lld", &x[0], &x[1], &x[2], &x[3], &x[4], &x[5],
             &x[6], &x[7], &x[8]) < 5) {
    fprintf(stderr, "%s: D,Hq,Hk,S,B[,page[,splits[,rows[,layout]]]]\n", text);
    exit(2);
  }
  r = (row){x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]};
  return r;
}

int main(int argc, char **argv) {
  static const char *const usual[] = {"128,32,8,8192,1",     "128,32,8,8192,16",      "64,32,32,8192,1",
                                      "64,32,32,8192,16",    "128,32,8,131072,1",     "128,32,8,131072,16",
                                      "64,32,32,131072,1",   "128,32,8,8192,16,256",  "64,32,32,8192,16,256",
                                      "128,32,8,8192,16,16", "128,32,8,8192,1,256",   "128,32,8,131072,1,256",
                                      "256,16,4,8192,16",    "128,32,8,8192,16,0,0,8"};
  fa_cuda_context context;
  fa_error err = {""};
  if (fa_cuda_context_open(0, &context, &err) != FA_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 77;
  }
  driver = context.driver;
  open_graphs();
  block = malloc(BLOCK_BYTES);
  if (!block) return 1;
  uint32_t x = 1;
  for (size_t i = 0; i < BLOCK_BYTES / 2; ++i) {
    x = x * 1664525 + 1013904223;
    ((uint16_t *)(void *)block)[i] = (uint16_t)((x >> 31 << 15) | (0x3c00 + (x >> 16) % 0x400)); /* bf16 */
  }
  CUevent events[2];
  for (int i = 0; i < 2; ++i) must(driver->cuEventCreate(&events[i], CU_EVENT_DEFAULT), "cuEventCreate");
  for (int i = 1; i < argc || (argc == 1 && i <= (int)(sizeof usual / sizeof *usual)); ++i) {
    const row r = parse(argc == 1 ? usual[i - 1] : argv[i]);
    bench(&r, events);
  }
  free(block);
  fa_cuda_context_close(&context);
  return 0;
}
