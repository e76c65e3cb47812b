/* Calls of the flex family on the cuda backend. */
#ifndef FA_GPU_CUDA_BACKEND_FLEX_H
#define FA_GPU_CUDA_BACKEND_FLEX_H

#include "gpu/backend.h"
#include "gpu/cuda_backend/memory.h"

/* Device memory that the passes will ask for; 0 where they will be refused. Of the tensors only whether they
 * are there and how they are aligned matters, which is alike on both sides. */
size_t fa_cuda_flex_scratch(const fa_problem *p, const fa_tensors *host, unsigned passes);

/* The launches, between tensors that are on the device or on their way. FA_ERR_UNSUPPORTED: there is no
 * NVRTC. stream not NULL: they are captured, and nothing may wait for them. A kernel that NVRTC does not compile is an error of the harness, FA_ERR_DEVICE. */
fa_status fa_cuda_flex_launch(const fa_cuda_device *device, const fa_problem *p, const fa_cuda_tensors *t,
                              unsigned passes, CUstream stream, fa_outcome *out, fa_error *err);

#endif
