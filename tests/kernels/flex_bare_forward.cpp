/* The short forward kernels for 16 bits as a device has them for a call with nothing beside its expressions, whose rows begin
 * anywhere and are narrow. In a namespace of their own, for they are called like those that can do everything. */
#include "gpu/kernels/params/traits.h"

#define FA_LACKS (2047 & ~FA_HAS_UNALIGNED)
#define FA_ONLY                                                                                              \
  FA_ENTRY(flex_forward_f16_short, f16, 16, 64)                                                              \
  FA_ENTRY(flex_forward_bf16_short, bf16, 16, 64)
#define fa fa_bare
#define fa_kernels_flex_forward_short flex_bare_forward
#include "gpu/kernels/flex/forward_short.cu"
