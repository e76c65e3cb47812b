/* Copies that are over when they return. */
#ifndef FA_GPU_CUDA_BACKEND_COPY_H
#define FA_GPU_CUDA_BACKEND_COPY_H

#include "gpu/driver/libcuda.h"

/* After everything in the stream, whatever other streams do. */
CUresult fa_cuda_copy_up(const fa_cuda_driver *d, CUdeviceptr to, const void *from, size_t bytes,
                         CUstream stream);
CUresult fa_cuda_copy_down(const fa_cuda_driver *d, void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream);

#endif
