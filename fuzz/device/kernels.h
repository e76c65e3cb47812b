/* The device and the judge's kernels on it: one context and one copy of the code for all machines of this process. */
#ifndef FA_FUZZ_DEVICE_KERNELS_H
#define FA_FUZZ_DEVICE_KERNELS_H

#include "gpu/cuda_backend/context.h"
#include "ref/cuda/machine.h"

typedef struct fa_device_kernels {
  fa_cuda_context context;
  CUlibrary library;
  CUkernel kernel[FA_JUDGE_N_KERNELS];
} fa_device_kernels;

/* Opens the first device. FA_ERR_UNSUPPORTED as fa_device_machines has it. */
fa_status fa_device_kernels_load(fa_device_kernels *d, fa_error *err);
/* As launch_all of fa_judge_machine. */
fa_status fa_device_launch(const fa_device_kernels *d, CUstream stream, fa_judge_kernel kernel,
                           const fa_judge_task *tasks, int n, fa_error *err);

/* FA_OK, or the driver's words about `what`. */
fa_status fa_device_said(const fa_device_kernels *d, CUresult code, const char *what, fa_error *err);

#endif
