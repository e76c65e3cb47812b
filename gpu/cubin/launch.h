/* The launches of a plan, with the values that a call gives them. */
#ifndef FA_GPU_CUBIN_LAUNCH_H
#define FA_GPU_CUBIN_LAUNCH_H

#include "gpu/cubin/plan.h"
#include "gpu/cubin/sizes.h"
#include "gpu/driver/libcuda.h"

/* A call on the device. */
typedef struct fa_cubin_call {
  const fa_cuda_driver *driver;
  CUdevice device;
  const fa_cubin_plan *plan;
  const CUkernel *kernel; /* [plan->n_launches] */
  fa_cubin_sizes sizes;   /* its tensors' data are addresses of the device */
  char *workspace;        /* likewise; NULL: none */
  unsigned passes;        /* fa_pass bits */
  const char *what;       /* written: the kernel that was launched last, or could not be */
  CUresult code;          /* written: of the driver's last call */
} fa_cubin_call;

/* Bytes of workspace that the call needs. FA_ERR_INPUT: the plan's expression has no such value. */
fa_status fa_cubin_workspace(const fa_cubin_plan *plan, const fa_cubin_sizes *sizes, size_t *bytes,
                             fa_error *err);
/* Issues every launch of these passes into the NULL stream. FA_ERR_INPUT: what the plan asks for cannot be launched, which
 * is the plan's fault. Another status: the driver's, with call->code. */
fa_status fa_cubin_launch_all(fa_cubin_call *call, fa_error *err);

#endif
