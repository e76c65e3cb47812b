#include "gpu/cuda_backend/copy.h"

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
