#include "tests/bench/device.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { SINGLE = 31, BATCHES = 7, IN_A_ROW = 20, BLOCK_BYTES = 1 << 25 };

static fa_cuda_context context;
static char *block; /* random elements */
static CUevent events[2];
static CUstream stream;

/* Functions of the driver that the library itself does not use. */
static struct {
  CUresult (*create_stream)(CUstream *, unsigned);
  CUresult (*begin)(CUstream, CUstreamCaptureMode);
  CUresult (*end)(CUstream, CUgraph *);
  CUresult (*instantiate)(CUgraphExec *, CUgraph, unsigned long long);
  CUresult (*launch)(CUgraphExec, CUstream);
  CUresult (*destroy)(CUgraphExec);
  CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
} graphs;

static void must(CUresult code, const char *what) {
  if (code == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: error %d\n", what, (int)code);
  exit(1);
}

/* ---- the device ---- */

static void open_graphs(void) {
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  if (!lib) exit(77);
  *(void **)&graphs.create_stream = dlsym(lib, "cuStreamCreate");
  *(void **)&graphs.begin = dlsym(lib, "cuStreamBeginCapture_v2");
  *(void **)&graphs.end = dlsym(lib, "cuStreamEndCapture");
  *(void **)&graphs.instantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
  *(void **)&graphs.launch = dlsym(lib, "cuGraphLaunch");
  *(void **)&graphs.destroy = dlsym(lib, "cuGraphExecDestroy");
  *(void **)&graphs.copy = dlsym(lib, "cuMemcpyDtoDAsync_v2");
  must(graphs.create_stream(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

static void make_block(void) {
  uint32_t x = 1;
  block = malloc(BLOCK_BYTES);
  if (!block) exit(1);
  for (size_t i = 0; i < BLOCK_BYTES / 2; ++i) {
    x = x * 1664525 + 1013904223;
    ((uint16_t *)(void *)block)[i] = (uint16_t)((x >> 31 << 15) | (0x3c00 + (x >> 16) % 0x400)); /* bf16 */
  }
}

void bench_open(void) {
  fa_error err = {""};
  if (fa_cuda_context_open(0, &context, &err) != FA_OK) {
    fprintf(stderr, "%s\n", err.text);
    exit(77);
  }
  open_graphs();
  make_block();
  for (int i = 0; i < 2; ++i)
    must(context.driver->cuEventCreate(&events[i], CU_EVENT_DEFAULT), "cuEventCreate");
}

void bench_close(void) {
  free(block);
  fa_cuda_context_close(&context);
}

const fa_cuda_context *bench_context(void) {
  return &context;
}
CUstream bench_stream(void) {
  return stream;
}

/* ---- memory ---- */

CUdeviceptr bench_allocate(size_t bytes) {
  CUdeviceptr p = 0;
  must(context.driver->cuMemAlloc(&p, bytes ? bytes : 16), "cuMemAlloc");
  return p;
}

CUdeviceptr bench_allocate_random(size_t bytes) {
  const CUdeviceptr p = bench_allocate(bytes);
  for (size_t at = 0; at < bytes; at += BLOCK_BYTES)
    must(context.driver->cuMemcpyHtoD(p + at, block, bytes - at < BLOCK_BYTES ? bytes - at : BLOCK_BYTES),
         "cuMemcpyHtoD");
  return p;
}

CUdeviceptr bench_upload(const int32_t *from, size_t n) {
  const CUdeviceptr p = bench_allocate(n * 4);
  must(context.driver->cuMemcpyHtoD(p, from, n * 4), "cuMemcpyHtoD");
  return p;
}

CUdeviceptr bench_upload_pages(int64_t n) {
  int32_t *table = malloc((size_t)(n ? n : 1) * 4);
  uint64_t x = 1;
  if (!table) exit(1);
  for (int64_t i = 0; i < n; ++i) table[i] = (int32_t)i;
  for (int64_t i = n - 1; i > 0; --i) {
    x = x * 6364136223846793005u + 1442695040888963407u;
    const int64_t j = (int64_t)((x >> 33) % (uint64_t)(i + 1));
    const int32_t t = table[i];
    table[i] = table[j];
    table[j] = t;
  }
  const CUdeviceptr p = bench_upload(table, (size_t)n);
  free(table);
  return p;
}

void bench_free(const CUdeviceptr *memory, int n) {
  for (int i = 0; i < n; ++i) context.driver->cuMemFree(memory[i]);
}

/* ---- time ---- */

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *x, size_t n) {
  qsort(x, n, sizeof *x, by_value);
  return x[n / 2];
}

/* A graph of IN_A_ROW calls. */
static CUgraphExec capture(void (*make)(const void *), const void *call) {
  CUgraph graph = NULL;
  CUgraphExec in_a_row = NULL;
  must(graphs.begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  for (int i = 0; i < IN_A_ROW; ++i) make(call);
  must(graphs.end(stream, &graph), "cuStreamEndCapture");
  must(graphs.instantiate(&in_a_row, graph, 0), "cuGraphInstantiate");
  return in_a_row;
}

/* Microseconds per call: of those in the graph, or of a single one where that is NULL. */
static double time_once(void (*make)(const void *), const void *call, CUgraphExec in_a_row) {
  float ms = 0;
  must(context.driver->cuEventRecord(events[0], stream), "cuEventRecord");
  if (in_a_row)
    must(graphs.launch(in_a_row, stream), "cuGraphLaunch");
  else
    make(call);
  must(context.driver->cuEventRecord(events[1], stream), "cuEventRecord");
  must(context.driver->cuEventSynchronize(events[1]), "cuEventSynchronize");
  must(context.driver->cuEventElapsedTime(&ms, events[0], events[1]), "cuEventElapsedTime");
  return 1000.0 * ms / (in_a_row ? IN_A_ROW : 1);
}

bench_times bench_time(void (*make)(const void *), const void *call) {
  double one[SINGLE], many[BATCHES], warm = 0;             /* clocks rise under load */
  for (int i = 0; i < 5; ++i) time_once(make, call, NULL); /* loads the kernels before capture */
  const CUgraphExec in_a_row = capture(make, call);
  for (int i = 0; i < 200 && warm < 50e3; ++i) warm += time_once(make, call, in_a_row) * IN_A_ROW;
  for (int i = 0; i < SINGLE; ++i) one[i] = time_once(make, call, NULL);
  for (int i = 0; i < BATCHES; ++i) many[i] = time_once(make, call, in_a_row);
  graphs.destroy(in_a_row);
  return (bench_times){median(one, SINGLE), median(many, BATCHES)};
}

typedef struct copied {
  CUdeviceptr to, from;
  size_t bytes;
} copied;

static void copy(const void *data) {
  const copied *c = data;
  must(graphs.copy(c->to, c->from, c->bytes, stream), "cuMemcpyDtoDAsync");
}

double bench_copy_gb(void) {
  const size_t bytes = (size_t)1 << 31;
  const copied c = {bench_allocate(bytes), bench_allocate_random(bytes), bytes};
  const bench_times t = bench_time(copy, &c);
  const CUdeviceptr used[] = {c.to, c.from};
  bench_free(used, 2);
  return 2e-3 * (double)bytes / t.one;
}
