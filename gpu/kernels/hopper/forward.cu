/* The forward kernels for sm_90a: the lines FA_FORWARD... of gpu/kernels/registry/hopper.def, or the one
 * in FA_ONLY. */
#include "gpu/kernels/hopper/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/hopper/describe.h"
#include "gpu/kernels/registry/select.h"

namespace fa {
template <class C> static constexpr fa_kernel describe_forward(int least_keys) {
  fa_kernel k = describe_hopper<C>(FA_STEP_FORWARD, 1);
  k.ability.keys = least_keys;
  return k;
}
} // namespace fa

int fa_hopper_host_counter(void) {
  static unsigned n;
  return static_cast<int>(__atomic_fetch_add(&n, 1u, __ATOMIC_RELAXED) % FA_HOPPER_COUNTERS);
}

unsigned fa_hopper_host_counter_left(int counter) {
  /* Not by +, which asks the executor: the library has this function, and no executor. */
  return __atomic_exchange_n(&fa::hopper_counters.v[counter], 0u, __ATOMIC_RELAXED);
}
#endif

#define FA_MADE(least_keys, name, T, D, KIND, ...)                                                           \
  FA_KERNEL(name, fa::hopper_forward_params<KIND>::type,                                                     \
            __launch_bounds__(fa::hopper_forward_config<T, D, KIND, __VA_ARGS__>::THREADS, 1),               \
            "FA_ENTRY(" #name "," #T ", " #D ", " #KIND ", " #__VA_ARGS__ ")",                               \
            (fa::describe_forward<fa::hopper_forward_config<T, D, KIND, __VA_ARGS__>>(least_keys)),          \
            fa::hopper_forward<fa::hopper_forward_config<T, D, KIND, __VA_ARGS__>>)
#define FA_ENTRY(...) FA_MADE(0, __VA_ARGS__)

FA_UNIT_BEGIN(hopper, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#define FA_FORWARD_LONG(...) FA_MADE(FA_HOPPER_LONG, __VA_ARGS__)
#ifndef __CUDACC__ /* a device's are compiled by FA_ONLY */
#define FA_FORWARD_FLEX FA_ENTRY
#endif
#include "gpu/kernels/registry/hopper.def"
#endif
FA_UNIT_END(hopper, forward)
