/* The short backward kernels for 16 bits as a device has them for a call with nothing beside its expressions, whose rows begin
 * anywhere. In a namespace of their own, for they are called like those that can do everything. */
#include "gpu/kernels/params/traits.h"

#define FA_LACKS (2047 & ~(FA_HAS_UNALIGNED | FA_HAS_WIDE))
#define FA_ONLY                                                                                              \
  FA_ENTRY(flex_backward_f16_short_keys, f16, memeff_backward_keys, 16, 32)                                  \
  FA_ENTRY(flex_backward_f16_short_queries, f16, memeff_backward_queries, 16, 32)
#define fa fa_bare
#define fa_kernels_flex_backward flex_bare_backward
#include "gpu/kernels/flex/backward.cu"
