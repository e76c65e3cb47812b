/* What kernels may assume of their calls where they are compiled. A translation unit made for one call defines FA_LACKS before it
 * includes this: what the call has not (gpu/expr/unit.h). Other kernels ask their parameters for everything. */
#ifndef FA_GPU_KERNELS_PARTS_TRAITS_CUH
#define FA_GPU_KERNELS_PARTS_TRAITS_CUH

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/traits.h"

#ifndef FA_LACKS
#define FA_LACKS 0
#endif

namespace fa {

/* false: no call of this kernel has it. */
FA_DEVICE constexpr bool may_have(fa_trait what) {
  return !(FA_LACKS & what);
}

/* aligned: what the parameters say. */
FA_DEVICE constexpr bool rows_are_aligned(bool aligned) {
  return may_have(FA_HAS_ALIGNED) && (aligned || !may_have(FA_HAS_UNALIGNED));
}

} // namespace fa

#endif
