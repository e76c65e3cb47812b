/* The kernels that merge partial states, backward: the lines FA_BACKWARD of gpu/kernels/registry/merge.def, or the one in FA_ONLY. */
#include "gpu/kernels/merge/backward.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
namespace fa {
template <class T, class P> static constexpr fa_kernel describe_merge_backward() {
  fa_kernel k = describe_type<T>(FA_STEP_BACKWARD, FA_MERGE_THREADS);
  k.parts_dtype = dtype_of<P>();
  k.block_m = FA_MERGE_ROWS;
  return k;
}
} // namespace fa
#endif

#define FA_ENTRY(name, T, P)                                                                                 \
  FA_KERNEL(name, fa_merge_params, __launch_bounds__(FA_MERGE_THREADS), "FA_ENTRY(" FA_TEXT_3(name, T, P) ")", \
            (fa::describe_merge_backward<fa::T, fa::P>()), fa::merge_backward<fa::T, fa::P>)

FA_UNIT_BEGIN(merge, backward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_BACKWARD FA_ENTRY
#include "gpu/kernels/registry/merge.def"
#endif
FA_UNIT_END(merge, backward)
