/* The kernels that clear and round the gradients of captured buffers, before and after the backward kernels: the lines
 * FA_EXACT of gpu/kernels/registry/flex.def. */
#include "gpu/kernels/mods/exact.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
static constexpr fa_kernel describe_exact(fa_kernel_step step) {
  fa_kernel k = describe_step(step, FA_FLEX_EXACT_THREADS);
  k.block_m = FA_FLEX_EXACT_ELEMENTS;
  return k;
}
} // namespace fa
#endif

FA_UNIT_BEGIN(flex, exact)
#define FA_EXACT(name, step)                                                                                 \
  FA_KERNEL(name, fa_flex_exact_params, __launch_bounds__(FA_FLEX_EXACT_THREADS), nullptr, fa::describe_exact(step), \
            fa::name)
#include "gpu/kernels/registry/flex.def"
FA_UNIT_END(flex, exact)
