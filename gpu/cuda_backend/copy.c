#include "gpu/cuda_backend/copy.h"

#include "cases/threads/bulk.h"

/* The default stream's copies do not wait for a stream that waits for none. */
CUresult fa_cuda_copy_up(const fa_cuda_driver *d, CUdeviceptr to, const void *from, size_t bytes,
                         CUstream stream) {
  if (!stream) return d->cuMemcpyHtoD(to, from, bytes);
  const CUresult code = d->cuMemcpyHtoDAsync(to, from, bytes, stream);
  return code == CUDA_SUCCESS ? d->cuStreamSynchronize(stream) : code;
}

CUresult fa_cuda_copy_down(const fa_cuda_driver *d, void *to, CUdeviceptr from, size_t bytes,
                           CUstream stream) {
  if (!stream) return d->cuMemcpyDtoH(to, from, bytes);
  const CUresult code = d->cuMemcpyDtoHAsync(to, from, bytes, stream);
  return code == CUDA_SUCCESS ? d->cuStreamSynchronize(stream) : code;
}

CUresult fa_cuda_copy_pieces(const fa_cuda_driver *d, CUdeviceptr to, const char *from, size_t bytes,
                             const fa_cuda_pinned *stage, CUstream stream) {
  CUresult code = CUDA_SUCCESS;
  for (size_t at = 0; at < bytes && code == CUDA_SUCCESS; at += stage->bytes) {
    const size_t n = bytes - at < stage->bytes ? bytes - at : stage->bytes;
    fa_bulk_copy(stage->memory, from + at, n);
    code = d->cuMemcpyHtoDAsync(to + at, stage->memory, n, stream);
    if (code == CUDA_SUCCESS) code = d->cuStreamSynchronize(stream);
  }
  return code;
}
