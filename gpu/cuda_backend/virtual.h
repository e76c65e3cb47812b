/* The device's counterpart of a buffer that is mostly address space (cases/tensors/guard.h): the same amount
 * of address space, with memory only in the granules (2 MiB) that overlap memory on the host. An access to
 * any other granule ends the kernel. The rest of a granule is a margin, which holds the guards' pattern and
 * must keep it. */
#ifndef FA_GPU_CUDA_BACKEND_VIRTUAL_H
#define FA_GPU_CUDA_BACKEND_VIRTUAL_H

#include "cases/tensors/guard.h"
#include "gpu/driver/libcuda.h"

typedef struct fa_cuda_virtual {
  CUdeviceptr base; /* start of the front guard; 0: nothing */
  size_t reserved;  /* bytes of address space */
  size_t granule;
  int n;
  fa_span *mapped; /* bytes from base, whole granules, ascending, disjoint */
} fa_cuda_virtual;

/* Reserves and maps the buffer with its guards, and copies it to the device in the stream. FA_ERR_UNSUPPORTED (*code
 * CUDA_SUCCESS): the device has no such virtual memory. On failure nothing is left. */
fa_status fa_cuda_virtual_up(const fa_cuda_driver *d, const fa_buffer *host, CUstream stream,
                             fa_cuda_virtual *out, CUresult *code, fa_error *err);
/* Copies guards and islands back to the host. *intact: the margins are unchanged; otherwise `where` says what
 * changed. */
fa_status fa_cuda_virtual_down(const fa_cuda_driver *d, const fa_cuda_virtual *from, const fa_buffer *host,
                               CUstream stream, bool *intact, char *where, size_t where_size, CUresult *code,
                               fa_error *err);
void fa_cuda_virtual_free(const fa_cuda_driver *d, fa_cuda_virtual *v);

#endif
