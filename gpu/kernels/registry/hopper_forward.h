/* The sm_90a forward kernels: one entry per line of gpu/kernels/hopper/forward_list.h. */
#ifndef FA_GPU_KERNELS_REGISTRY_HOPPER_FORWARD_H
#define FA_GPU_KERNELS_REGISTRY_HOPPER_FORWARD_H

#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/params/hopper_forward.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Keys of a call for which larger key blocks pay. */
#define FA_HOPPER_LONG 4096

/* The first kernel that can do this for so many keys; its entry takes fa_hopper_params. NULL: there is none
 * for this device, or for this call. They take any two head dims up to their own, aligned rows, masks, and
 * one of ALiBi, softcap and tiled dropout; nothing else. varlen: entries' keys or rows number less than the
 * tensors have. */
const fa_kernel *fa_hopper_forward_find(fa_kernel_ability wanted, int64_t seqlen_k, int varlen,
                                              const fa_kernel_device *device);

/* The same for a call with score_mod, mask_mod or block lists, of which wanted says nothing: for the executor
 * with fa_flex_args.functions; for a device compiled with the expressions of the call. Lists
 * (fa_flex_args.keys) are for tiles of block_m rows and block_n keys. */
const fa_kernel *fa_hopper_flex_forward_find(fa_kernel_ability wanted, const fa_kernel_device *device);

/* A counter of the host's for one launch on the executor. As on a device all are 0 in the beginning, and
 * nobody but the launches sets them back. */
int fa_hopper_host_counter(void);
/* What the launch left there, 0 if it is right; then it is 0, so that one fault is one report. */
unsigned fa_hopper_host_counter_left(int counter);

/* Names of all, in no particular order; NULL past the last. */
const char *fa_hopper_forward_name(int i);
const char *fa_hopper_flex_forward_name(int i);

#ifdef __cplusplus
}
#endif

#endif
