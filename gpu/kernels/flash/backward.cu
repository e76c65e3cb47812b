/* The backward kernels: the lines FA_BACKWARD... of gpu/kernels/registry/flash.def that are compiled ahead of time, of
 * both element types or of one, or those in FA_ONLY. */
#include "gpu/kernels/flash/backward.cuh"
#include "gpu/kernels/flash/backward_convert.cuh"
#include "gpu/kernels/flash/backward_dbias.cuh"
#include "gpu/kernels/flash/backward_prepare.cuh"
#include "gpu/kernels/flash/backward_queries.cuh"
#include "gpu/kernels/registry/unit.cuh"

namespace fa {

template <class C> FA_DEVICE void flash_backward_main(const fa_backward_params &p) {
  if constexpr (C::BY_QUERIES)
    flash_backward_queries<C>(p);
  else
    flash_backward<C>(p);
}

} // namespace fa

#ifndef __CUDACC__
#include "gpu/kernels/flash/describe.h"

namespace fa {
template <class C> static constexpr fa_kernel describe_main() {
  fa_kernel k = describe_flash<C>(C::BY_QUERIES ? FA_STEP_BY_QUERIES : FA_STEP_BY_KEYS);
  k.subtracts_first = C::BIAS;
  return k;
}
/* Of those around the main ones; head_dim: of the tiles, 0 for any. */
template <class T> static constexpr fa_kernel describe_around(fa_kernel_step step, int head_dim) {
  fa_kernel k = describe_type<T>(step, FA_BACKWARD_THREADS);
  if (head_dim) k.ability.head_dim = head_dim;
  return k;
}
} // namespace fa
#endif

#define FA_CONFIG(T, D, kind, shape) fa::flash_backward_config<fa::T, D, fa::kind, fa::shape>
#define FA_MAIN(macro, name, T, D, kind, shape)                                                              \
  macro(name, fa_backward_params,                                                                            \
        __launch_bounds__(FA_CONFIG(T, D, kind, shape)::THREADS, FA_CONFIG(T, D, kind, shape)::MIN_BLOCKS),  \
        "FA_ENTRY(" FA_TEXT_5(name, T, D, kind, shape) ")", (fa::describe_main<FA_CONFIG(T, D, kind, shape)>()),  \
        fa::flash_backward_main<FA_CONFIG(T, D, kind, shape)>)
#define FA_AROUND(name, T, D, text, step, ...)                                                               \
  FA_KERNEL(name, fa_backward_params, __launch_bounds__(FA_BACKWARD_THREADS), text,                          \
            (fa::describe_around<fa::T>(step, D)), __VA_ARGS__)

/* The kernels around the main ones; prepare_only leaves the accumulators as they are, convert makes dQ and
 * convert_keys dK and dV. */
#define FA_ROW_KERNELS(name, T, D, text)                                                                     \
  FA_AROUND(name##_prepare, T, D, text, FA_STEP_PREPARE,                                                     \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, true>>)                   \
  FA_AROUND(name##_prepare_only, T, D, text, FA_STEP_PREPARE_ONLY,                                           \
            fa::flash_backward_prepare<fa::flash_backward_prepare_config<fa::T, D, false>>)                  \
  FA_AROUND(name##_clear, T, D, text, FA_STEP_CLEAR,                                                         \
            fa::flash_backward_clear<fa::flash_backward_row_config<fa::T, D>>)                               \
  FA_AROUND(name##_convert, T, D, text, FA_STEP_CONVERT,                                                     \
            fa::flash_backward_convert<fa::flash_backward_row_config<fa::T, D>>)                             \
  FA_AROUND(name##_convert_keys, T, D, text, FA_STEP_CONVERT_KEYS,                                           \
            fa::flash_backward_convert_keys<fa::flash_backward_row_config<fa::T, D>>)
#define FA_DBIAS_KERNELS(name, T, text)                                                                      \
  FA_AROUND(name##_dbias_clear, T, 0, text, FA_STEP_DBIAS_CLEAR, fa::flash_backward_dbias_clear)             \
  FA_AROUND(name##_dbias_convert, T, 0, text, FA_STEP_DBIAS_CONVERT, fa::flash_backward_dbias_convert<fa::T>)

#define FA_ENTRY(...) FA_MAIN(FA_KERNEL, __VA_ARGS__)
#define FA_ENTRY_ROWS(name, T, D) FA_ROW_KERNELS(name, T, D, "FA_ENTRY_ROWS(" FA_TEXT_3(name, T, D) ")")
#define FA_ENTRY_DBIAS(name, T) FA_DBIAS_KERNELS(name, T, "FA_ENTRY_DBIAS(" FA_TEXT_2(name, T) ")")

FA_UNIT_BEGIN(flash, backward)
#ifdef FA_ONLY
FA_ONLY
#else
/* Devices of compute capability 9.0 and above have enough shared memory for the large tiles. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define FA_ENTRY_by_keys_small(...)
#else
#define FA_ENTRY_by_keys_small FA_ENTRY
#endif
#define FA_ENTRY_by_keys FA_ENTRY
#define FA_ENTRY_by_queries FA_ENTRY
#define FA_BACKWARD(name, T, D, kind, shape) FA_ENTRY_##shape(name, T, D, kind, shape)
#define FA_BACKWARD_LATE(...) FA_MAIN(FA_KERNEL_LATE, __VA_ARGS__)
#define FA_BACKWARD_ROWS FA_ENTRY_ROWS
#define FA_BACKWARD_DBIAS FA_ENTRY_DBIAS
#include "gpu/kernels/registry/flash.def"
#endif
FA_UNIT_END(flash, backward)
