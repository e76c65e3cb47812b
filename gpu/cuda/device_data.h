/* fa_attention.check_device_data: what the host cannot see of a call. */
#ifndef FA_GPU_CUDA_DEVICE_DATA_H
#define FA_GPU_CUDA_DEVICE_DATA_H

#include "gpu/driver/libcuda.h"
#include "gpu/plan/make.h"

/* Waits for the stream, and checks the contents of the call's integer arrays. FA_ERR_INPUT. */
fa_status fa_cuda_check_device_data(const fa_cuda_driver *d, const fa_call *call, CUstream stream,
                                    fa_error *err);

#endif
