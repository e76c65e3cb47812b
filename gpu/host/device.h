/* The device that the host backend plays. */
#ifndef FA_GPU_HOST_DEVICE_H
#define FA_GPU_HOST_DEVICE_H

#include "cases/base/status.h"
#include "gpu/kernels/registry/kernel.h"

typedef struct fa_host_device {
  fa_kernel_device limits;
  int n_processors;
} fa_host_device;

/* The defaults, and what stands behind "host:" on the command line changes them: shared=KIB, processors=N,
 * and hopper for the kernels for sm_90a where they can do a call, with commas between. Few processors by
 * default: enough for a deterministic call of few heads to have several accumulators, few enough for blocks to
 * share one. FA_ERR_INPUT. */
fa_status fa_host_device_parse(const char *arg, fa_host_device *out, fa_error *err);

#endif
