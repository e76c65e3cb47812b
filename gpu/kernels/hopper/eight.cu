/* The forward kernels for sm_90a with Q, K and V of e4m3: the lines FA_EIGHT of gpu/kernels/registry/hopper.def, or the one
 * in FA_ONLY. */
#include "gpu/kernels/hopper/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

namespace fa {
/* T: O's type. AMAX: the largest P and O are outputs. */
template <class T, int D, kernel_kind KIND, bool AMAX = false>
using hopper_eight_config = hopper_forward_config<T, D, KIND, 2, 128, false, 0, true, 2, true, AMAX>;
} // namespace fa

#ifndef __CUDACC__
#include "gpu/kernels/hopper/describe.h"

namespace fa {
template <class C> static constexpr fa_kernel describe_eight() {
  fa_kernel k = describe_hopper<C>(FA_STEP_FORWARD, 1);
  k.ability.eight = 1;
  k.ability.amax = C::AMAX;
  return k;
}
} // namespace fa
#endif

#define FA_ENTRY(name, ...)                                                                                  \
  FA_KERNEL(name, fa_hopper_params, __launch_bounds__(fa::hopper_eight_config<__VA_ARGS__>::THREADS, 1),     \
            "FA_ENTRY(" #name "," #__VA_ARGS__ ")",                                                          \
            (fa::describe_eight<fa::hopper_eight_config<__VA_ARGS__>>()),                                    \
            fa::hopper_forward<fa::hopper_eight_config<__VA_ARGS__>>)

FA_UNIT_BEGIN(hopper, eight)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_EIGHT FA_ENTRY
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper, eight)
