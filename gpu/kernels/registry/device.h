/* When two devices are the same to those who choose kernels. Not in kernel.h, which every kernel includes. */
#ifndef FA_GPU_KERNELS_REGISTRY_DEVICE_H
#define FA_GPU_KERNELS_REGISTRY_DEVICE_H

#include "gpu/kernels/registry/kernel.h"

#include <stdbool.h>

static inline bool fa_kernel_device_same(const fa_kernel_device *x, const fa_kernel_device *y) {
  return x->max_shared_bytes == y->max_shared_bytes && x->compiles == y->compiles && x->hopper == y->hopper;
}

#endif
