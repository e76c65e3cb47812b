/* The kernels that append to a cache: the lines FA_APPEND, FA_APPEND_ELEMENTS and FA_APPEND_EIGHT of
 * gpu/kernels/registry/cache.def, or the one in FA_ONLY. */
#include "gpu/kernels/cache/append_eight.cuh"
#include "gpu/kernels/registry/unit.cuh"

#define FA_ENTRY(name, T, step, function)                                                                    \
  FA_KERNEL(name, fa_cache_append_params, __launch_bounds__(FA_CACHE_APPEND_THREADS),                        \
            "FA_ENTRY(" FA_TEXT_4(name, T, step, function) ")",                                              \
            (fa::describe_type<fa::T>(step, FA_CACHE_APPEND_THREADS)), fa::function<fa::T>)

#ifndef __CUDACC__
namespace fa {
template <class E, class T> static constexpr fa_kernel describe_append_eight() {
  fa_kernel k = describe_type<T>(FA_STEP_APPEND_EIGHT, FA_CACHE_APPEND_THREADS);
  k.ability.cache_dtype = dtype_of_bytes<E>();
  return k;
}
} // namespace fa
#endif

#define FA_ENTRY_EIGHT(name, E, T)                                                                           \
  FA_KERNEL(name, fa_cache_append_params, __launch_bounds__(FA_CACHE_APPEND_THREADS),                        \
            "FA_ENTRY_EIGHT(" FA_TEXT_3(name, E, T) ")", (fa::describe_append_eight<fa::E, fa::T>()),        \
            fa::cache_append_eight<fa::E, fa::T>)

FA_UNIT_BEGIN(cache, append)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_APPEND(name, T) FA_ENTRY(name, T, FA_STEP_APPEND, cache_append)
#define FA_APPEND_ELEMENTS(name, T) FA_ENTRY(name, T, FA_STEP_APPEND_ELEMENTS, cache_append_elements)
#define FA_APPEND_EIGHT FA_ENTRY_EIGHT
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, append)
