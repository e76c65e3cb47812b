/* The tables of all sources, as their units make them, and what selections over them share. */
#ifndef FA_GPU_KERNELS_REGISTRY_TABLES_H
#define FA_GPU_KERNELS_REGISTRY_TABLES_H

#include "gpu/kernels/registry/kernel.h"

#include <stdint.h>

#define FA_UNIT(folder, file) extern const fa_kernel_table fa_kernels_##folder##_##file;
#define FA_UNIT_BY_TYPE FA_UNIT
#define FA_UNIT_OF_CALLS FA_UNIT
#include "gpu/kernels/registry/units.def"

/* The first that does `step`, can do what is wanted and is to be had: it fits the device, and is there or can be compiled.
 * NULL: there is none. */
const fa_kernel *fa_kernel_first(const fa_kernel_table *t, fa_kernel_step step, const fa_kernel_ability *wanted,
                                 const fa_kernel_device *device);

/* The first of a type that does `step`. */
const fa_kernel *fa_kernel_of_type(const fa_kernel_table *t, fa_kernel_step step, fa_dtype dtype);

/* Of forward kernels that take any head dim: the narrowest that makes all columns at once, or else the widest, of those
 * that fit the device. */
const fa_kernel *fa_kernel_narrowest(const fa_kernel_table *t, fa_dtype dtype, int64_t head_dim_v,
                                     const fa_kernel_device *device);

#endif
