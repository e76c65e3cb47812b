/* Calls on the GPU: planned for the current device, and the plan's launches put into a stream. */
#ifndef FA_GPU_CUDA_RUN_H
#define FA_GPU_CUDA_RUN_H

#include "gpu/driver/libcuda.h"
#include "gpu/plan/make.h"

/* What a call was planned as; of a failed one, as far as it came. */
typedef struct fa_cuda_ran {
  const char *name; /* as fa_plan; "": it was refused before */
  bool aligned;
} fa_cuda_ran;

/* Errors are those of gpu/fa.h, and mean that nothing was launched. A kernel that cannot be had here (NVRTC
 * does not compile it, or the driver makes no maps for it) gives way to a more general one. ran: may be NULL. */
fa_status fa_cuda_run(const fa_call *call, size_t workspace_bytes, CUstream stream, fa_cuda_ran *ran,
                      fa_error *err);

/* Who runs together with whom; compute capability 9.0 and later. */
typedef struct fa_cuda_together {
  bool overlaps;    /* the kernel itself waits for those before it in the stream (wait_for_kernels_before), so that it
                       may be under way while the last of them is not yet done */
  unsigned cluster; /* blocks side by side in x; 0: as the kernel was compiled */
} fa_cuda_together;

/* One launch. params: the one argument that every kernel takes, by value. */
fa_status fa_cuda_launch(const fa_cuda_driver *d, CUkernel kernel, const char *name, size_t shared_bytes,
                         const unsigned grid[3], unsigned n_threads, fa_cuda_together how, const void *params,
                         CUstream stream, fa_error *err);

#endif
