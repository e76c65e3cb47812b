#include "fuzz/device/machine.h"
#include "fuzz/device/cubins.h"

#include "gpu/cuda_backend/context.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 256, WARP = 32 };

typedef struct device {
  fa_judge_machine machine;
  fa_cuda_context context;
  CUlibrary library;
  CUkernel kernel[FA_JUDGE_N_KERNELS];
  CUstream stream;
  CUdeviceptr memory;
  char *staged; /* pinned */
  size_t memory_bytes, staged_bytes;
} device;

static const char *const names[] = {
#define FA_JUDGE_KERNEL(name, kind) "fa_judge_entry_" #name,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
};

/* Items of a block of threads. */
enum { ROW = THREADS / WARP, ELEMENT = THREADS, TILE = 1 };
static const int items[] = {
#define FA_JUDGE_KERNEL(name, kind) kind,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
};

static fa_status said(const device *d, CUresult code, const char *what, fa_error *err) {
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d->context.driver, code, what, err);
}

/* Grows by half at least: calls of a campaign differ little. */
static size_t grown(size_t have, size_t bytes) {
  return bytes > have + have / 2 ? bytes : have + have / 2;
}

static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  device *d = self;
  const fa_cuda_driver *driver = d->context.driver;
  fa_status status = fa_cuda_context_use(&d->context, err);
  if (status == FA_OK && bytes > d->memory_bytes) {
    const size_t more = grown(d->memory_bytes, bytes);
    if (d->memory) driver->cuMemFree(d->memory);
    d->memory = 0;
    d->memory_bytes = 0;
    status = said(d, driver->cuMemAlloc(&d->memory, more), "the judge's memory", err);
    if (status == FA_OK) d->memory_bytes = more;
  }
  *memory = (char *)(uintptr_t)d->memory;
  return status;
}

static fa_status stage(void *self, size_t bytes, char **memory, fa_error *err) {
  device *d = self;
  const fa_cuda_driver *driver = d->context.driver;
  fa_status status = FA_OK;
  if (bytes > d->staged_bytes) {
    const size_t more = grown(d->staged_bytes, bytes);
    if (d->staged) driver->cuMemFreeHost(d->staged);
    d->staged = NULL;
    d->staged_bytes = 0;
    status = said(d, driver->cuMemAllocHost((void **)&d->staged, more), "the judge's pinned memory", err);
    if (status == FA_OK) d->staged_bytes = more;
  }
  *memory = d->staged;
  return status;
}

static CUdeviceptr address(const void *p) {
  return (CUdeviceptr)(uintptr_t)p;
}

static fa_status upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  device *d = self;
  return said(d, d->context.driver->cuMemcpyHtoDAsync(address(to), from, bytes, d->stream), "upload", err);
}

static fa_status download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  device *d = self;
  const fa_cuda_driver *driver = d->context.driver;
  CUresult code = driver->cuMemcpyDtoHAsync(to, address(from), bytes, d->stream);
  if (code == CUDA_SUCCESS) code = driver->cuStreamSynchronize(d->stream);
  return said(d, code, "the judge's results", err);
}

static fa_status clear(void *self, void *at, size_t bytes, fa_error *err) {
  device *d = self;
  if (bytes == 0) return FA_OK;
  return said(d, d->context.driver->cuMemsetD8Async(address(at), 0, bytes, d->stream), "clear", err);
}

static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_job *job, fa_error *err) {
  device *d = self;
  const unsigned blocks = (unsigned)((job->n + items[kernel] - 1) / items[kernel]);
  void *parameters[] = {(void *)job};
  if (blocks == 0) return FA_OK;
  return said(d,
              d->context.driver->cuLaunchKernel((CUfunction)d->kernel[kernel], blocks, 1, 1, THREADS, 1, 1, 0,
                                                d->stream, parameters, NULL),
              names[kernel], err);
}

static fa_status load(device *d, fa_error *err) {
  const fa_cuda_driver *driver = d->context.driver;
  const fa_cuda_device *info = &d->context.device;
  const char *code = NULL;
  for (int i = 0; i < fa_device_n_cubins && !code; ++i)
    if (fa_device_cubins[i].capability == 10 * info->major + info->minor) code = fa_device_cubins[i].code;
  if (!code)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "no kernels of the judge for %s (compute capability %d.%d)",
                   info->name, info->major, info->minor);
  fa_status status = said(d, driver->cuLibraryLoadData(&d->library, code, NULL, NULL, 0, NULL, NULL, 0),
                          "the judge's kernels", err);
  for (int k = 0; status == FA_OK && k < FA_JUDGE_N_KERNELS; ++k)
    status = said(d, driver->cuLibraryGetKernel(&d->kernel[k], d->library, names[k]), names[k], err);
  return status;
}

static fa_status open_device(device *d, size_t most_bytes, fa_error *err) {
  fa_status status = fa_cuda_context_open_any(0, &d->context, err);
  if (status == FA_OK) status = load(d, err);
  if (status == FA_OK)
    status = said(d, d->context.driver->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING),
                  "the judge's stream", err);
  d->machine = (fa_judge_machine){.self = d,
                                  .most_bytes = most_bytes ? most_bytes : (size_t)40 << 30,
                                  .reserve = reserve,
                                  .stage = stage,
                                  .upload = upload,
                                  .download = download,
                                  .clear = clear,
                                  .launch = launch};
  return status;
}

/* Lives as long as the process. */
fa_status fa_device_machine_open(size_t most_bytes, fa_judge_machine **out, fa_error *err) {
  static device the_device;
  static fa_status opened = FA_ERR_INPUT; /* not yet */
  static fa_error why;
  if (opened == FA_ERR_INPUT) opened = open_device(&the_device, most_bytes, &why);
  if (opened != FA_OK && err) *err = why;
  *out = opened == FA_OK ? &the_device.machine : NULL;
  return opened;
}
