#include "fuzz/device/machine.h"
#include "fuzz/device/kernels.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct device {
  fa_judge_machine machine;
  const fa_device_kernels *kernels;
  const fa_cuda_driver *driver;
  CUstream stream; /* NULL: nothing was to be done yet. Most do nothing ever: lines work for them */
  CUdeviceptr memory;
  size_t memory_bytes;
  void *pinned; /* NULL: nothing is */
} device;

static fa_status said(const device *d, CUresult code, const char *what, fa_error *err) {
  return fa_device_said(d->kernels, code, what, err);
}

/* ---- memory ---- */

#define MUCH ((size_t)2 << 30)

/* Grows by half at least: calls of a campaign differ little. Every time the device stands still, and so a call has some room to
 * begin with. Of what a single large call took, others get the most back. */
static size_t better(size_t have, size_t bytes) {
  const size_t some = bytes > (1 << 20) ? (size_t)256 << 20 : 1 << 20;
  if (bytes <= have && (have < MUCH || bytes > have / 8)) return have;
  const size_t more = bytes + bytes / 2,
               less = have < MUCH && have + have / 2 > more ? have + have / 2 : more;
  return bytes >= MUCH ? bytes : less > some ? less : some;
}

static fa_status reserve(void *self, size_t bytes, char **memory, fa_error *err) {
  device *d = self;
  fa_status status = fa_cuda_context_use(&d->kernels->context, err);
  const size_t wanted = better(d->memory_bytes, bytes);
  if (status == FA_OK && wanted != d->memory_bytes) {
    if (d->memory) d->driver->cuMemFree(d->memory);
    d->memory = 0;
    d->memory_bytes = 0;
    status = said(d, d->driver->cuMemAlloc(&d->memory, wanted), "the judge's memory", err);
    if (status == FA_OK) d->memory_bytes = wanted;
  }
  d->machine.kept_bytes = d->memory_bytes < MUCH ? d->memory_bytes : 0;
  *memory = (char *)(uintptr_t)d->memory;
  return status;
}

static CUdeviceptr address(const void *p) {
  return (CUdeviceptr)(uintptr_t)p;
}

static fa_status open_stream(device *d, fa_error *err) {
  if (d->stream) return FA_OK;
  return said(d, d->driver->cuStreamCreate(&d->stream, CU_STREAM_NON_BLOCKING), "the judge's stream", err);
}

static fa_status upload(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  device *d = self;
  const fa_status status = open_stream(d, err);
  if (status != FA_OK) return status;
  return said(d, d->driver->cuMemcpyHtoDAsync(address(to), from, bytes, d->stream), "upload", err);
}

static fa_status fetch(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  device *d = self;
  const fa_status status = open_stream(d, err);
  if (status != FA_OK) return status;
  return said(d, d->driver->cuMemcpyDtoHAsync(to, address(from), bytes, d->stream), "the judge's results",
              err);
}

static fa_status wait_for_all(void *self, fa_error *err) {
  device *d = self;
  if (!d->stream) return FA_OK;
  return said(d, d->driver->cuStreamSynchronize(d->stream), "the judge's results", err);
}

static fa_status download(void *self, void *to, const void *from, size_t bytes, fa_error *err) {
  const fa_status status = fetch(self, to, from, bytes, err);
  return status == FA_OK ? wait_for_all(self, err) : status;
}

static fa_status clear(void *self, void *at, size_t bytes, fa_error *err) {
  device *d = self;
  const fa_status status = bytes > 0 ? open_stream(d, err) : FA_OK;
  if (status != FA_OK || bytes == 0) return status;
  return said(d, d->driver->cuMemsetD8Async(address(at), 0, bytes, d->stream), "clear", err);
}

static fa_status launch_all(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                            fa_error *err) {
  device *d = self;
  const fa_status status = open_stream(d, err);
  return status == FA_OK ? fa_device_launch(d->kernels, d->stream, kernel, tasks, n, err) : status;
}

/* ---- machines ---- */

static fa_device_kernels the_kernels; /* as long as the process lives */

static fa_status begin(fa_error *err) {
  return fa_device_kernels_load(&the_kernels, err);
}

static void close_device(fa_judge_machine *m) {
  device *d = m->self;
  if (fa_cuda_context_use(&d->kernels->context, NULL) == FA_OK) {
    if (d->stream) d->driver->cuStreamDestroy(d->stream);
    if (d->memory) d->driver->cuMemFree(d->memory);
  }
  free(d);
}

static fa_status open_device(fa_judge_machine **out, fa_error *err) {
  device *d = calloc(1, sizeof *d);
  *out = NULL;
  if (!d) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  d->kernels = &the_kernels;
  d->driver = the_kernels.context.driver;
  d->machine = (fa_judge_machine){.self = d,
                                  .most_bytes = (size_t)35 << 30, /* 40 GB with all contexts */
                                  .reserve = reserve,
                                  .upload = upload,
                                  .download = download,
                                  .clear = clear,
                                  .launch_all = launch_all,
                                  .fetch = fetch,
                                  .wait = wait_for_all};
  const fa_status status = fa_cuda_context_use(&the_kernels.context, err);
  if (status == FA_OK)
    *out = &d->machine;
  else
    close_device(&d->machine);
  return status;
}

/* Copies to and from pinned memory need no processor. What cannot be pinned is copied all the same. */
static void pin(fa_judge_machine *m, void *memory, size_t bytes) {
  device *d = m->self;
  if (fa_cuda_context_use(&d->kernels->context, NULL) != FA_OK) return;
  if (d->pinned) d->driver->cuMemHostUnregister(d->pinned);
  d->pinned = NULL;
  if (bytes > 0 && d->driver->cuMemHostRegister(memory, bytes, 0) == CUDA_SUCCESS) d->pinned = memory;
}

enum { LINES = 3 }; /* one is waited for while the others' work is under way */

const fa_judge_machines fa_device_machines = {
    .lines = LINES, .begin = begin, .open = open_device, .close = close_device, .pin = pin};
