/* A call's tensors on the device. */
#ifndef FA_GPU_CUDA_MEMORY_H
#define FA_GPU_CUDA_MEMORY_H

#include "cases/tensor.h"
#include "gpu/cuda/driver.h"
#include "gpu/cuda/virtual.h"

/* Every buffer of the host's set has its like on the device: as long, guards and gaps included, and filled
 * with the same bytes; virtual where the host's is. So all that the host can say about its own buffers after
 * a run (who wrote where) it can say about the device's, once they have been copied back whole. */
typedef struct fa_cuda_tensors {
  fa_tensors set;               /* as the host's, with device addresses in t[].data; owns no host memory */
  CUdeviceptr base[FA_T_COUNT]; /* of the front guards; 0: no buffer */
  fa_cuda_virtual sparse[FA_T_COUNT]; /* what base is of, where the host's buffer is virtual */
} fa_cuda_tensors;

/* Allocates and copies up. On failure frees what it had. *code: what the driver said. */
fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, const fa_tensors *host, fa_cuda_tensors *out,
                             CUresult *code, fa_error *err);
/* Copies everything back over the host's buffers. *intact: nobody wrote to what the device's buffers have
 * beyond the host's; else where says which. */
fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, fa_tensors *host,
                               bool *intact, char *where, size_t where_size, CUresult *code, fa_error *err);
void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t);

/* Scratch memory between guards; all of it starts as NaN, for nobody promises zeros. bytes may be 0. */
typedef struct fa_cuda_scratch {
  CUdeviceptr base; /* of the front guard; 0: nothing */
  size_t bytes;
} fa_cuda_scratch;

fa_status fa_cuda_scratch_make(const fa_cuda_driver *d, size_t bytes, fa_cuda_scratch *out, CUresult *code,
                               fa_error *err);
void *fa_cuda_scratch_payload(const fa_cuda_scratch *s); /* a device address; NULL for 0 bytes */
/* *intact: nobody wrote into the guards; else where says which. */
fa_status fa_cuda_scratch_check(const fa_cuda_driver *d, const fa_cuda_scratch *s, bool *intact, char *where,
                                size_t where_size, CUresult *code, fa_error *err);
void fa_cuda_scratch_free(const fa_cuda_driver *d, fa_cuda_scratch *s);

#endif
