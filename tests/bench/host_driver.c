#include "tests/bench/host_driver.h"

#include "gpu/cuda/run.h"
#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/modules/kernel.h"
#include "tests/bench/device.h"
#include "tests/bench/median.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { IN_A_ROW = 20 };

static const unsigned one[3] = {1, 1, 1};
static fa_kernel_amax numbers;
static CUdeviceptr memory;

static void need(fa_status status, const fa_error *err) {
  if (status == FA_OK) return;
  fprintf(stderr, "%s\n", err->text);
  exit(1);
}

static void wait(void) {
  bench_context()->driver->cuStreamSynchronize(bench_stream());
}

/* ---- launches ---- */

typedef struct launch {
  CUkernel kernel; /* or the function of it in this context */
  fa_cuda_together how;
} launch;

static void make(void *data) {
  const launch *l = data;
  fa_error err;
  need(fa_cuda_launch(bench_context()->driver, l->kernel, "an empty launch", 0, one, FA_AMAX_THREADS, l->how,
                      &numbers, bench_stream(), &err),
       &err);
}

static double time_launch(CUkernel kernel, bool overlaps) {
  launch l = {kernel, {.overlaps = overlaps}};
  return bench_median_us(make, &l, IN_A_ROW, wait);
}

static CUkernel find_kernel(void) {
  const fa_kernel_entry *k = fa_amax_clear_find();
  CUkernel kernel = NULL;
  fa_error err;
  need(fa_cuda_kernel(bench_context()->driver, &bench_context()->device, k->name, &k->recipe, 0, &kernel,
                      &err),
       &err);
  memory = bench_allocate(8);
  numbers = (fa_kernel_amax){(float *)memory, (float *)memory + 1};
  return kernel;
}

/* A function that the library does not use. */
static CUkernel as_function(CUkernel kernel) {
  CUresult (*get)(CUfunction *, CUkernel) = NULL;
  CUfunction function = NULL;
  void *lib = dlopen("libcuda.so.1", RTLD_NOW);
  if (lib) *(void **)&get = dlsym(lib, "cuKernelGetFunction");
  return get && get(&function, kernel) == CUDA_SUCCESS ? (CUkernel)function : kernel;
}

/* ---- questions ---- */

static void ask_device(void *data) {
  const fa_cuda_driver *d = data;
  CUcontext context;
  CUdevice device;
  d->cuCtxGetCurrent(&context);
  d->cuCtxGetDevice(&device);
}

static void ask_properties(void *data) {
  fa_cuda_device device;
  fa_cuda_device_get(data, 0, &device, NULL);
}

static void ask_capture(void *data) {
  const fa_cuda_driver *d = data;
  CUstreamCaptureStatus capture;
  d->cuStreamIsCapturing(bench_stream(), &capture);
}

static void ask_map(void *data) {
  const fa_cuda_driver *d = data;
  static const cuuint64_t size[4] = {64, 2, 2, 1}, bytes[3] = {128, 256, 512};
  static const cuuint32_t box[4] = {64, 2, 1, 1}, steps[4] = {1, 1, 1, 1};
  CUtensorMap map;
  d->cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, (void *)memory, size, bytes, box,
                            steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                            CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static double time_asked(void (*ask)(void *)) {
  return bench_median_us(ask, (void *)bench_context()->driver, IN_A_ROW, NULL);
}

void bench_host_driver_print(void) {
  const CUkernel kernel = find_kernel(), function = as_function(kernel);
  printf("an empty launch %.2f us; that may overlap %.2f; of a function, not a kernel %.2f, %.2f\n",
         time_launch(kernel, false), time_launch(kernel, true), time_launch(function, false),
         time_launch(function, true));
  printf("the current device %.3f us; its properties %.3f; whether a stream is captured %.3f; a tensor map "
         "%.3f\n",
         time_asked(ask_device), time_asked(ask_properties), time_asked(ask_capture), time_asked(ask_map));
}
