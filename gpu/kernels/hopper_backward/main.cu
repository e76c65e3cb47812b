/* The main backward kernels for sm_90a: the lines FA_BACKWARD... of gpu/kernels/registry/hopper.def, or the one in
 * FA_ONLY. */
#include "gpu/kernels/hopper_backward/main.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/hopper/describe.h"

namespace fa {
/* The workspace has rows of the head dim up to a multiple of 32, and they must be the tiles'. */
template <class C> static constexpr fa_kernel describe_main() {
  fa_kernel k = describe_hopper<C>(FA_STEP_BY_KEYS, C::D - 31);
  k.ability.ordered = C::ORDERED;
  k.subtracts_first = C::BIAS || C::LINEAR;
  k.takes_turns = C::DQ_SEMAPHORE;
  return k;
}
} // namespace fa
#endif

#define FA_ENTRY(name, T, D, BM, KIND, ...)                                                                  \
  FA_KERNEL(name, fa::hopper_backward_params<KIND>::type,                                                    \
            __launch_bounds__(fa::hopper_backward_config<T, D, BM, KIND, __VA_ARGS__>::THREADS, 1),          \
            "FA_ENTRY(" #name "," #T ", " #D ", " #BM ", " #KIND ", " #__VA_ARGS__ ")",                      \
            (fa::describe_main<fa::hopper_backward_config<T, D, BM, KIND, __VA_ARGS__>>()),                  \
            fa::hopper_backward<fa::hopper_backward_config<T, D, BM, KIND, __VA_ARGS__>>)

FA_UNIT_BEGIN(hopper_backward, main)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_BACKWARD FA_ENTRY
#ifndef __CUDACC__ /* a device's are compiled by FA_ONLY */
#define FA_BACKWARD_FLEX FA_ENTRY
#endif
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper_backward, main)
