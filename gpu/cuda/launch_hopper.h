/* The kernels for sm_90a on the GPU.
 *
 * FA_HOPPER=auto, the default: what they can do, they do, on a device of compute capability 9.0. off: the
 * kernels for every device do everything. */
#ifndef FA_GPU_CUDA_LAUNCH_HOPPER_H
#define FA_GPU_CUDA_LAUNCH_HOPPER_H

#include "gpu/driver/libcuda.h"
#include "gpu/plan/hopper.h"
#include "gpu/kernels/params/tensor_map.h"

/* True if such a kernel does this call's work, as far as is known before it is loaded. a has passed
 * fa_forward_check. */
bool fa_cuda_hopper_is_chosen(const fa_cuda_device *device, const fa_attention *a);

/* Launches it and sets *launched. FA_OK and not *launched: the others are to do the work, because there is no
 * such kernel for the call, it could not be compiled, or the driver takes no such maps. FA_ERR_INPUT:
 * FA_HOPPER is not understood. */
fa_status fa_cuda_hopper_forward(const fa_cuda_driver *d, const fa_cuda_device *device, const fa_attention *a,
                                 CUstream stream, bool *launched, fa_error *err);

/* The same for the main kernel of a backward call, in the place of the plan's launch
 * FA_HOPPER_BACKWARD_LAUNCH (fa_hopper_backward_make): *kernel is NULL if there is none. */
fa_status fa_cuda_hopper_backward_find(const fa_cuda_driver *d, const fa_cuda_device *device,
                                       const fa_attention *a, const fa_gradients *g,
                                       const fa_backward_plan *plan, fa_hopper_backward_plan *out,
                                       CUkernel *kernel, fa_error *err);
fa_status fa_cuda_hopper_backward(const fa_cuda_driver *d, const fa_hopper_backward_plan *plan,
                                  CUkernel kernel, CUstream stream, fa_error *err);

/* Whether such a kernel was launched by this thread since it asked last. */
bool fa_cuda_hopper_ran(void);

/* ---- for other launches of such kernels ---- */

void fa_cuda_hopper_note(void); /* that one was launched */

/* *off: they do nothing. FA_ERR_INPUT as above. */
fa_status fa_cuda_hopper_policy(bool *off, fa_error *err);
/* What they are chosen for; hopper = 0: none are. FA_ERR_INPUT as above. */
fa_status fa_cuda_hopper_target(const fa_cuda_device *device, fa_kernel_device *out, fa_error *err);
CUresult fa_cuda_hopper_encode(const fa_cuda_driver *d, const fa_tensor_box *x, fa_tensor_map *to);
/* The next of FA_HOPPER_COUNTERS counters, round and round: as many launches are never under way at once. A
 * graph may be replayed at any time, so what is captured gets none, -1. */
int fa_cuda_hopper_counter(const fa_cuda_driver *d, CUstream stream);

#endif
