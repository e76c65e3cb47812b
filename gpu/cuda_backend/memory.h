/* A call's tensors on the device. */
#ifndef FA_GPU_CUDA_BACKEND_MEMORY_H
#define FA_GPU_CUDA_BACKEND_MEMORY_H

#include "cases/tensors/set.h"
#include "gpu/cuda_backend/copy.h"
#include "gpu/cuda_backend/virtual.h"
#include "gpu/driver/libcuda.h"

/* Memory kept from call to call. If several processes share a device, each waits for its turn at every call
 * that waits for the device, allocations included; so a set of tensors is one allocation, with one copy each
 * way. Zeroed: no memory yet. For one context, and one set at a time. */
enum { FA_CUDA_BLOCKS = 2 };
typedef struct fa_cuda_arena {
  CUstream stream;  /* in which everything is copied and waited for; NULL: the default stream */
  CUdeviceptr base; /* 0: no memory */
  size_t bytes;
  CUdeviceptr idle_base; /* memory of calls of the other size, large or small: a small call fills little */
  size_t idle_bytes;
  fa_cuda_pinned stage;
  fa_cuda_pinned block[FA_CUDA_BLOCKS]; /* of the callers */
  bool busy;                            /* the device may still be copying from or to stage */
} fa_cuda_arena;

/* Largest arena that is kept. Larger sets get an arena that is freed with them, and are copied without
 * staging. */
#define FA_CUDA_ARENA_KEPT ((size_t)1 << 30)
#define FA_CUDA_STAGE_KEPT ((size_t)64 << 20)

/* Page-locked memory for a set of tensors as fa_tensors_clone_poisoned_into lays it out, which is then copied without
 * staging; NULL: none. What it held before for this place is gone. A kernel could reach it, as it could staging memory: one that writes
 * wherever it likes also to what a run before it left in the other place. */
char *fa_cuda_arena_block(const fa_cuda_driver *d, fa_cuda_arena *arena, int place, size_t bytes);

/* Waits until the device has finished with it, and frees everything. */
void fa_cuda_arena_free(const fa_cuda_driver *d, fa_cuda_arena *arena);

/* Every buffer of the host's set has a counterpart on the device: equally long, guards and gaps included,
 * filled with the same bytes; virtual if the host's is, otherwise in the arena, at a multiple of 512 bytes as
 * if allocated by itself. After the buffers were copied back whole, the host's checks (who wrote where)
 * therefore hold for the device. Everything else in the arena is NaN, scratch memory and its guards too:
 * zeros are not promised, and no call sees another's data. */
typedef struct fa_cuda_tensors {
  fa_tensors set;               /* like the host's, with device addresses in t[].data; owns no host memory */
  CUdeviceptr base[FA_T_COUNT]; /* start of the front guard; 0: no buffer */
  fa_cuda_virtual sparse[FA_T_COUNT]; /* the memory at base, where the host's buffer is virtual */
  fa_cuda_arena *arena;
  char *stage;  /* the arena's, or the block that the host's set is in; NULL: buffers are copied one by one */
  size_t bytes; /* of the arena: the tensors' own buffers */
  size_t scratch;       /* offset in the arena of the front guard of scratch memory */
  size_t scratch_bytes; /* without guards */
} fa_cuda_tensors;

/* Allocates, and starts copying to the device in the arena's stream, with scratch_bytes (may be 0) of scratch
 * memory. On failure frees what it allocated, not the arena. *code: the driver's error. */
fa_status fa_cuda_tensors_up(const fa_cuda_driver *d, fa_cuda_arena *arena, const fa_tensors *host,
                             size_t scratch_bytes, fa_cuda_tensors *out, CUresult *code, fa_error *err);
void *fa_cuda_tensors_scratch(const fa_cuda_tensors *t); /* a device address; NULL for 0 bytes */
/* Waits for what was launched (what: its name, for the message) and copies everything back over the host's
 * buffers. *intact: the device's memory outside the host's buffers, and the guards of scratch memory, are
 * unchanged; otherwise `where` says which changed, and the host's buffers may be as before. */
fa_status fa_cuda_tensors_down(const fa_cuda_driver *d, const fa_cuda_tensors *from, const char *what,
                               fa_tensors *host, bool *intact, char *where, size_t where_size, CUresult *code,
                               fa_error *err);
/* Waits for what was launched, if nothing is to be copied back. */
CUresult fa_cuda_tensors_wait(const fa_cuda_driver *d, const fa_cuda_tensors *t);
/* Waits if the device is still working; the arena keeps its memory unless it is too large to be kept. */
void fa_cuda_tensors_free(const fa_cuda_driver *d, fa_cuda_tensors *t);

#endif
