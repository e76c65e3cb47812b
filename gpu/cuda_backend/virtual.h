/* The device's like of a buffer that is mostly address space (cases/tensors/guard.h): as much address space,
 * and memory only under the granules (2 MiB) that hold what is memory on the host. An access to any other
 * granule ends the kernel; the part of a granule beside the host's memory is a margin, which holds the
 * guards' pattern and must keep it. */
#ifndef FA_GPU_CUDA_BACKEND_VIRTUAL_H
#define FA_GPU_CUDA_BACKEND_VIRTUAL_H

#include "cases/tensors/guard.h"
#include "gpu/driver/libcuda.h"

typedef struct fa_cuda_virtual {
  CUdeviceptr base; /* of the front guard; 0: nothing */
  size_t reserved;  /* bytes of address space */
  size_t granule;
  int n;
  fa_span *mapped; /* bytes from base on, whole granules, ascending, apart */
} fa_cuda_virtual;

/* Reserves, maps and copies up the buffer with its guards. FA_ERR_UNSUPPORTED (*code CUDA_SUCCESS): the
 * device has no virtual memory of this kind. On failure nothing is left. */
fa_status fa_cuda_virtual_up(const fa_cuda_driver *d, const fa_buffer *host, fa_cuda_virtual *out,
                             CUresult *code, fa_error *err);
/* Copies guards and islands back over the host's. *intact: the margins hold what they held; else where says
 * what changed. */
fa_status fa_cuda_virtual_down(const fa_cuda_driver *d, const fa_cuda_virtual *from, const fa_buffer *host,
                               bool *intact, char *where, size_t where_size, CUresult *code, fa_error *err);
void fa_cuda_virtual_free(const fa_cuda_driver *d, fa_cuda_virtual *v);

#endif
