/* Calls that were made lately, ready to be made again. Layer after layer and step after step ask for the same: the same
 * sizes, strides and flags between the same tensors. Such a call is checked, planned, and its kernels and tensor maps
 * found once; after that it costs a comparison and its launches.
 *
 * Two calls are the same if every byte of their structs is, pointers included, and what they were planned for: the
 * device, and what the environment allows there. A kept call holds no memory of the caller's, and nothing of a context:
 * kernels are of a device, maps are bytes. Each thread keeps its own, FA_CUDA_KEPT of them at most, until it ends. */
#ifndef FA_GPU_CUDA_KEPT_H
#define FA_GPU_CUDA_KEPT_H

#include "gpu/driver/libcuda.h"
#include "gpu/modules/rtc.h"
#include "gpu/plan/make.h"

enum { FA_CUDA_KEPT = 128 };

/* All that is launched, but for tile counters. It must stay where it was made, as the plan. */
typedef struct fa_cuda_ready {
  CUkernel kernel[FA_PLAN_LAUNCHES];
  fa_plan plan; /* with maps instead of boxes */
} fa_cuda_ready;

/* What is asked for, and of whom. */
typedef struct fa_cuda_asked {
  const fa_call *call;
  size_t workspace_bytes;
  CUdevice device;
  fa_kernel_device target; /* before any kernel gave way */
  fa_rtc_policy policy;
  unsigned generation; /* of what was learnt of the driver, before the call was made ready */
} fa_cuda_asked;

/* The place of such a call among the thread's own. *is_there: it is in it. Else whatever was there is gone, the caller
 * makes the call ready in it, and says so to fa_cuda_kept_keep; not where a kernel of it may be unloaded. NULL: such calls
 * are not kept (with expressions or block lists, checks of device data, merges), or there is no memory. */
fa_cuda_ready *fa_cuda_kept_find(const fa_cuda_asked *asked, bool *is_there);
void fa_cuda_kept_keep(fa_cuda_ready *place, const fa_cuda_asked *asked);

#endif
