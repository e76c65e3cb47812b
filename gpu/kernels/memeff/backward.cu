/* The memeff backward kernels: the lines FA_BACKWARD and FA_BACKWARD_SINGLE of gpu/kernels/registry/memeff.def, or the
 * one in FA_ONLY. */
#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/memeff/backward_queries.cuh"
#include "gpu/kernels/memeff/backward_single.cuh"
#include "gpu/kernels/memeff/dbias.cuh"
#include "gpu/kernels/memeff/dsinks.cuh"
#include "gpu/kernels/registry/unit.cuh"

#ifndef __CUDACC__
#include "gpu/kernels/memeff/describe.h"

namespace fa {
template <class T> static constexpr fa_kernel describe_prepare() {
  fa_kernel k = describe_type<T>(FA_STEP_PREPARE, FA_MEMEFF_BACKWARD_THREADS);
  k.block_m = FA_MEMEFF_PREPARE_ROWS;
  return k;
}
template <class T> static constexpr fa_kernel describe_dsinks() {
  fa_kernel k = describe_type<T>(FA_STEP_DSINKS, memeff_dsinks_config::THREADS);
  k.shared_bytes = memeff_dsinks_config::SHARED_BYTES;
  return k;
}
template <class C> static constexpr fa_kernel describe_single() {
  fa_kernel k = describe_tiles<C>(FA_STEP_BY_KEYS);
  k.ability.head_dim = C::D;
  k.ability.ordered = 0;
  k.block_cols = C::VC;
  return k;
}
} // namespace fa
#endif

#define FA_MADE(name, text, row, ...)                                                                        \
  FA_KERNEL(name, fa_memeff_backward_params, __launch_bounds__(FA_MEMEFF_BACKWARD_THREADS), text, row, __VA_ARGS__)
#define FA_ROW(T, step) (fa::describe_memeff_backward<fa::memeff_backward_config<fa::T>>(step))
#define FA_KERNELS_OF_TYPE(T, text)                                                                          \
  FA_MADE(memeff_backward_##T##_prepare, text, (fa::describe_prepare<fa::T>()),                              \
          fa::memeff_backward_prepare<fa::T>)                                                                \
  FA_MADE(memeff_backward_##T##_keys, text, FA_ROW(T, FA_STEP_KEYS),                                         \
          fa::memeff_backward_keys<fa::memeff_backward_config<fa::T>>)                                       \
  FA_MADE(memeff_backward_##T##_queries, text, FA_ROW(T, FA_STEP_QUERIES),                                   \
          fa::memeff_backward_queries<fa::memeff_backward_config<fa::T>>)                                    \
  FA_MADE(memeff_backward_##T##_dbias, text, FA_ROW(T, FA_STEP_DBIAS),                                       \
          fa::memeff_backward_dbias<fa::memeff_backward_config<fa::T>>)                                      \
  FA_MADE(memeff_backward_##T##_dsinks, text, (fa::describe_dsinks<fa::T>()),                                \
          fa::memeff_backward_dsinks<fa::T>)

#define FA_ENTRY_BACKWARD(T) FA_KERNELS_OF_TYPE(T, "FA_ENTRY_BACKWARD(" #T ")")
#define FA_ENTRY_SINGLE(name, T, D)                                                                          \
  FA_MADE(name, "FA_ENTRY_SINGLE(" FA_TEXT_3(name, T, D) ")", (fa::describe_single<fa::memeff_single_config<D>>()), \
          fa::memeff_backward_single<fa::memeff_single_config<D>>)

FA_UNIT_BEGIN(memeff, backward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_BACKWARD FA_ENTRY_BACKWARD
#define FA_BACKWARD_SINGLE FA_ENTRY_SINGLE
#include "gpu/kernels/registry/memeff.def"
#endif
FA_UNIT_END(memeff, backward)
