#include "fuzz/device/kernels.h"
#include "fuzz/device/cubins.h"

#include <stdlib.h>

static const char *const names[] = {
#define FA_JUDGE_KERNEL(name, kind) "fa_judge_entry_" #name,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
};

fa_status fa_device_said(const fa_device_kernels *d, CUresult code, const char *what, fa_error *err) {
  return code == CUDA_SUCCESS ? FA_OK : fa_cuda_fail(d->context.driver, code, what, err);
}

fa_status fa_device_launch(const fa_device_kernels *d, CUstream stream, fa_judge_kernel kernel,
                           const fa_judge_task *tasks, int n, fa_error *err) {
  fa_judge_batch batch;
  const char *jobs = (const char *)tasks[0].job;
  const uint32_t blocks = fa_judge_batch_of(kernel, tasks, n, &batch);
  void *parameters[] = {&batch, &jobs};
  if (blocks == 0) return fa_fail(err, FA_ERR_DEVICE, "%s: no launch has so many items", names[kernel]);
  return fa_device_said(d,
                        d->context.driver->cuLaunchKernel((CUfunction)d->kernel[kernel], blocks, 1, 1,
                                                          FA_JUDGE_THREADS, 1, 1, 0, stream, parameters,
                                                          NULL),
                        names[kernel], err);
}

static const char *code_for(const fa_cuda_device *info) {
  for (int i = 0; i < fa_device_n_cubins; ++i)
    if (fa_device_cubins[i].capability == 10 * info->major + info->minor) return fa_device_cubins[i].code;
  return NULL;
}

/* Before the driver is there. Streams share connections to the device and wait for each other there; six have work for most of
 * the time (fuzz/device/machine.c, LINES), and a context opens the sooner, the fewer it has. All kernels are loaded at once, while
 * workers open their contexts, not each when it is first launched and others wait. */
static void prepare_driver(void) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "8", 0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

fa_status fa_device_kernels_load(fa_device_kernels *d, fa_error *err) {
  prepare_driver();
  fa_status status = fa_cuda_context_open_any(0, &d->context, err);
  if (status != FA_OK) return status;
  const fa_cuda_device *info = &d->context.device;
  const char *code = code_for(info);
  if (!code)
    return fa_fail(err, FA_ERR_UNSUPPORTED, "no kernels of the judge for %s (compute capability %d.%d)",
                   info->name, info->major, info->minor);
  status =
      fa_device_said(d, d->context.driver->cuLibraryLoadData(&d->library, code, NULL, NULL, 0, NULL, NULL, 0),
                     "the judge's kernels", err);
  for (int k = 0; status == FA_OK && k < FA_JUDGE_N_KERNELS; ++k)
    status = fa_device_said(d, d->context.driver->cuLibraryGetKernel(&d->kernel[k], d->library, names[k]),
                            names[k], err);
  return status;
}
