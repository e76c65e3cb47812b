/* Calls of the flex family on the cuda backend. */
#ifndef FA_GPU_CUDA_BACKEND_FLEX_H
#define FA_GPU_CUDA_BACKEND_FLEX_H

#include "gpu/backend.h"
#include "gpu/cuda_backend/memory.h"

/* Device memory that the passes will need; 0 if they will be refused. Of the tensors only presence and
 * alignment matter, which are the same on host and device. */
size_t fa_cuda_flex_scratch(const fa_problem *p, const fa_tensors *host, unsigned passes);

/* Launches the kernels between tensors that are on the device or being copied there. FA_ERR_UNSUPPORTED:
 * there is no NVRTC. If stream is not NULL, the launches are captured, and nothing may wait for them. A
 * kernel that NVRTC cannot compile is an error of the harness, FA_ERR_DEVICE. */
fa_status fa_cuda_flex_launch(const fa_cuda_device *device, const fa_problem *p, const fa_cuda_tensors *t,
                              unsigned passes, CUstream stream, fa_outcome *out, fa_error *err);

#endif
