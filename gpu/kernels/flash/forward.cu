/* The forward kernels: the lines FA_FORWARD of gpu/kernels/registry/flash.def, or the one in FA_ONLY. */
#include "gpu/kernels/flash/forward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/flash/describe.h"

namespace fa {
template <class C> static constexpr fa_kernel describe_forward() {
  fa_kernel k = describe_flash<C>(FA_STEP_FORWARD);
  k.ability.p_debug = C::GENERAL;
  k.ability.sinks = C::SINKS;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, D, kind) fa::flash_forward_config<fa::T, D, fa::kind>
#define FA_MADE(macro, name, T, D, kind)                                                                     \
  macro(name, fa_attention_params, __launch_bounds__(FA_CONFIG(T, D, kind)::THREADS),                        \
        "FA_ENTRY(" FA_TEXT_4(name, T, D, kind) ")", (fa::describe_forward<FA_CONFIG(T, D, kind)>()),             \
        fa::flash_forward<FA_CONFIG(T, D, kind)>)
#define FA_ENTRY(...) FA_MADE(FA_KERNEL, __VA_ARGS__)

FA_UNIT_BEGIN(flash, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#define FA_FORWARD_LATE(...) FA_MADE(FA_KERNEL_LATE, __VA_ARGS__)
#include "gpu/kernels/registry/flash.def"
#endif
FA_UNIT_END(flash, forward)
