/* A call's tensors on the device. */
#ifndef FA_GPU_CUDA_BACKEND_MEMORY_H
#define FA_GPU_CUDA_BACKEND_MEMORY_H

#include "cases/tensors/set.h"
#include "gpu/driver/libcuda.h"
#include "gpu/cuda_backend/virtual.h"

/* Memory kept from call to call. Where several processes share a device each waits for its turn at every
 * call that waits for the device, allocations included; so a set of tensors is one allocation, and one copy
 * each way. Zeroed: nothing is held yet. Only for one context and one set at a time. */
typedef struct fa_cuda_arena {
  CUdeviceptr base; /* 0: nothing */
  size_t bytes;
  char *stage; /* page-locked host memory; NULL: none */
  size_t stage_bytes;
  bool busy; /* the device may still be copying from or to stage */
} fa_cuda_arena;

/* What is kept. Larger sets get an arena that goes with them, and are copied without a stage. */
#define FA_CUDA_ARENA_KEPT ((size_t)1 << 30)
#define FA_CUDA_STAGE_KEPT ((size_t)64 << 20)

/* Waits until the device is done with it, and gives all back. */
void fa_cuda_arena_free(const fa_cuda_driver *d, fa_cuda_arena *arena);

/* Every buffer of the host's set has its like on the device: as long, guards and gaps included, and filled
 * with the same bytes; virtual where the host's is, else in the arena, at a multiple of 512 bytes as if it
 * had been allocated by itself. So all that the host can say about its own buffers after a run (who wrote
 * where) it can say about the device's, once they have been copied back whole. All else in the arena is NaN,
 * scratch memory and the guards around it too: nobody promises zeros, and no call sees another's data. */
typedef struct fa_cuda_tensors {
  fa_tensors set;               /* as the host's, with device addresses in t[].data; owns no host memory */
  CUdeviceptr base[FA_T_COUNT]; /* of the front guards; 0: no buffer */
  fa_cuda_virtual sparse[FA_T_COUNT]; /* what base is of, where the host's buffer is virtual */
  fa_cuda_arena *arena;
  char *stage;          /* the arena's, or NULL: buffers are copied one by one */
  size_t bytes;         /* of the arena: the tensors' own buffers */
  size_t scratch;       /* where in the arena the front guard of scratch memory stands */
  size_t scratch_bytes; /* without guards */
} fa_cuda_tensors;

/* Allocates and begins to copy up, on the default stream, with scratch_bytes (may be 0) of scratch memory.
 * On failure frees what it had, not the arena. *code: what the driver said. */
fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                             size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code, fa_error *err);
void *fa_cuda_tensors_scratch(const fa_cuda_tensors *t); /* a device address; NULL for 0 bytes */
/* Waits for what was launched (what: its name, for the message) and copies everything back over the host's
 * buffers. *intact: nobody wrote to what the device's buffers have beyond the host's or to the guards of
 * scratch memory; else where says which, and the host's buffers may be as before. */
fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, const char *what,
                               fa_tensors *host, bool *intact, char *where, size_t where_size, CUresult *code,
                               fa_error *err);
/* Waits for what was launched, where nothing is to be copied back. */
CUresult fa_cuda_tensors_wait(const fa_cuda_driver *d, const fa_cuda_tensors *t);
/* Waits where the device is not done yet; the arena keeps its memory unless it is too large to be kept. */
void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t);

#endif
