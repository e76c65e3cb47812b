/* The device that a backend or a benchmark works on. */
#ifndef FA_GPU_CUDA_BACKEND_CONTEXT_H
#define FA_GPU_CUDA_BACKEND_CONTEXT_H

#include "gpu/driver/libcuda.h"

typedef struct fa_cuda_context {
  const fa_cuda_driver *driver;
  CUcontext context;
  fa_cuda_device device;
} fa_cuda_context;

/* Device number index, its primary context made current in this thread, and one byte allocated to see that it
 * works. FA_ERR_UNSUPPORTED: no kernels for it. */
fa_status fa_cuda_context_open(int index, fa_cuda_context *out, fa_error *err);
/* Makes it current in another thread, the one that works on from now on. */
fa_status fa_cuda_context_use(const fa_cuda_context *c, fa_error *err);
void fa_cuda_context_close(fa_cuda_context *c);

#endif
