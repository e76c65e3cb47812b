/* The kernels of typical calls, for tests and measurements of compilers. */
#ifndef FA_TESTS_SUPPORT_KERNEL_UNITS_H
#define FA_TESTS_SUPPORT_KERNEL_UNITS_H

#include "gpu/fa.h"
#include "gpu/kernels/registry/kernel.h"

typedef struct kernel_unit {
  char name[96]; /* of the device entry point */
  fa_kernel_recipe recipe;
  size_t shared_bytes;
} kernel_unit;

/* Feature of a call: none, softcap, dropout, or unaligned rows. */
typedef enum unit_feature {
  UNIT_PLAIN,
  UNIT_SOFTCAP,
  UNIT_DROPOUT,
  UNIT_UNALIGNED,
  N_UNIT_FEATURES
} unit_feature;

/* The kernels of one call, on a device with the shared memory of an H100 that compiles everything: at most
 * max into out; returns their number. */
int kernel_units_of(fa_dtype dtype, int head_dim, unit_feature feature, bool backward, kernel_unit *out,
                    int max);

/* The same of a call over a cache: append, attention, combine. */
int kernel_units_over_cache(fa_dtype dtype, int head_dim, unit_feature feature, kernel_unit *out, int max);

#endif
