/* The main backward kernels for sm_90a of head dims above 128: the lines FA_PAIR... of gpu/kernels/registry/hopper.def,
 * or the one in FA_ONLY. */
#include "gpu/kernels/hopper_backward/pair.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/hopper/describe.h"

namespace fa {
/* Tiles have columns up to a multiple of 64. */
template <class C> static constexpr fa_kernel describe_pair() {
  fa_kernel k = describe_hopper<C>(FA_STEP_BY_KEYS, C::D - 63);
  k.ability.ordered = C::ORDERED;
  k.takes_turns = C::DQ_SEMAPHORE;
  k.cluster = C::RANKS;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(...) fa::hopper_backward_pair_config<__VA_ARGS__>
#define FA_ENTRY(name, ...)                                                                                  \
  FA_KERNEL(name, fa_hopper_backward_params,                                                                 \
            __cluster_dims__(FA_CONFIG(__VA_ARGS__)::RANKS, 1, 1)                                            \
                __launch_bounds__(FA_CONFIG(__VA_ARGS__)::THREADS, 1),                                       \
            "FA_ENTRY(" #name "," #__VA_ARGS__ ")", (fa::describe_pair<FA_CONFIG(__VA_ARGS__)>()),                \
            fa::hopper_backward_pair<FA_CONFIG(__VA_ARGS__)>)

FA_UNIT_BEGIN(hopper_backward, pair)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_PAIR FA_ENTRY
#ifndef __CUDACC__ /* a device's are compiled by FA_ONLY */
#define FA_PAIR_FLEX FA_ENTRY
#endif
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper_backward, pair)
