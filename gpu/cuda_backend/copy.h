/* Copies that are over when they return. */
#ifndef FA_GPU_CUDA_BACKEND_COPY_H
#define FA_GPU_CUDA_BACKEND_COPY_H

#include "gpu/driver/libcuda.h"

/* After everything in the stream, whatever other streams do. */
CUresult fa_cuda_copy_up(const fa_cuda_driver *d, CUdeviceptr to, const void *from, size_t bytes,
                         CUstream stream);
CUresult fa_cuda_copy_down(const fa_cuda_driver *d, void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream);

typedef struct fa_cuda_pinned {
  char *memory; /* page-locked host memory; NULL: none */
  size_t bytes;
} fa_cuda_pinned;

/* Of much memory that is not page-locked, by way of some that is: the driver copies such memory by one thread, 5 GB/s, and here
 * the calling thread's bring it there piece by piece (cases/threads/bulk.h). Waits for the stream. */
CUresult fa_cuda_copy_pieces(const fa_cuda_driver *d, CUdeviceptr to, const char *from, size_t bytes,
                             const fa_cuda_pinned *stage, CUstream stream);

#endif
