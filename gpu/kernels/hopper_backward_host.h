/* The main backward kernels for sm_90a: one entry per line of hopper_backward_list.h. */
#ifndef FA_GPU_KERNELS_HOPPER_BACKWARD_HOST_H
#define FA_GPU_KERNELS_HOPPER_BACKWARD_HOST_H

#include "gpu/kernels/flash_forward_host.h"
#include "gpu/kernels/hopper_backward_params.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kernel whose tiles are exactly as wide as the call's head dims, up to a multiple of 32; its entry takes
 * fa_hopper_backward_params. NULL: there is none for this device, or for this call. */
const fa_flash_kernel *fa_hopper_backward_find(fa_flash_ability wanted, const fa_flash_device *device);

/* Of those for head dims from 129 on, which the first asks where it has none. */
const fa_flash_kernel *fa_hopper_backward_wide_find(fa_flash_ability wanted, const fa_flash_device *device);
const char *fa_hopper_backward_wide_name(int i);

/* Names of all, in no particular order; NULL past the last. */
const char *fa_hopper_backward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
