/* The device that a backend or benchmark uses. */
#ifndef FA_GPU_CUDA_BACKEND_CONTEXT_H
#define FA_GPU_CUDA_BACKEND_CONTEXT_H

#include "gpu/driver/libcuda.h"

#include <stdbool.h>

typedef struct fa_cuda_context {
  const fa_cuda_driver *driver;
  CUcontext context;
  fa_cuda_device device;
} fa_cuda_context;

/* Opens device number index: makes its primary context current in this thread, and allocates one byte to test
 * it. FA_ERR_UNSUPPORTED: no kernels for it. */
fa_status fa_cuda_context_open(int index, fa_cuda_context *out, fa_error *err);
/* Makes the context current in the calling thread, which uses it from now on. */
fa_status fa_cuda_context_use(const fa_cuda_context *c, fa_error *err);
void fa_cuda_context_close(fa_cuda_context *c);
/* The same as fa_cuda_context_open, whether or not there are kernels of ours for the device. */
fa_status fa_cuda_context_open_any(int index, fa_cuda_context *out, fa_error *err);

/* Did a kernel cause this, or is the device gone? An error caused by a kernel ends its context for good. */
bool fa_cuda_is_kernels_fault(CUresult code);

#endif
