/* The portable flex backward kernels: the lines FA_BACKWARD of gpu/kernels/registry/flex.def, or the one
 * in FA_ONLY. For a device they are compiled for the expressions of a call, which are defined before this
 * file (gpu/kernels/mods/call.cuh). */
#include "gpu/kernels/memeff/dbias.cuh"

#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/memeff/describe.h"

namespace fa {
enum { STEP_OF_memeff_backward_keys = FA_STEP_KEYS, STEP_OF_memeff_backward_queries = FA_STEP_QUERIES,
       STEP_OF_memeff_backward_dbias = FA_STEP_DBIAS };
template <class C> static constexpr fa_kernel describe_flex(int step) {
  fa_kernel k = at_run_time(describe_memeff_backward<C>(static_cast<fa_kernel_step>(step)));
  k.ability.flex = 1;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, BN, VC) fa::memeff_backward_config<fa::T, fa::flex_mods, BN, VC>
#define FA_ENTRY(name, T, kernel, BN, VC)                                                                    \
  FA_KERNEL(name, fa_memeff_backward_params, __launch_bounds__(FA_MEMEFF_BACKWARD_THREADS, 1),               \
            "FA_ENTRY(" FA_TEXT_5(name, T, kernel, BN, VC) ")",                                              \
            (fa::describe_flex<FA_CONFIG(T, BN, VC)>(fa::STEP_OF_##kernel)), fa::kernel<FA_CONFIG(T, BN, VC)>)

FA_UNIT_BEGIN(flex, backward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_BACKWARD FA_ENTRY
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, backward)
