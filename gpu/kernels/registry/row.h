/* Rows of the registry, made by the host compiler out of what kernels are compiled for. */
#ifndef FA_GPU_KERNELS_REGISTRY_ROW_H
#define FA_GPU_KERNELS_REGISTRY_ROW_H

#include "gpu/kernels/machine/prim.cuh"
#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/params/hopper_cache.h"
#include "gpu/kernels/params/latent.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/params/merge.h"
#include "gpu/kernels/registry/kernel.h"

#include <limits.h>
#include <type_traits>

namespace fa {

/* What the executor calls. */
template <class P, void (*KERNEL)(const P &)> static void run_on_host(const void *params) {
  KERNEL(*static_cast<const P *>(params));
}

/* KIND, N_MAPS and FLEX_AT of a struct, as in fa_kernel. */
template <class P> struct params_traits;
#define FA_PARAMS(type, kind, n_maps, flex_at)                                                               \
  template <> struct params_traits<type> {                                                                   \
    static constexpr fa_params_kind KIND = kind;                                                             \
    static constexpr int N_MAPS = n_maps, FLEX_AT = flex_at;                                                 \
  };
FA_PARAMS(fa_attention_params, FA_PARAMS_ATTENTION, 0, offsetof(fa_attention_params, flex))
FA_PARAMS(fa_backward_params, FA_PARAMS_BACKWARD, 0, offsetof(fa_backward_params, forward.flex))
FA_PARAMS(fa_memeff_backward_params, FA_PARAMS_MEMEFF_BACKWARD, 0,
          offsetof(fa_memeff_backward_params, forward.flex))
FA_PARAMS(fa_hopper_params, FA_PARAMS_HOPPER, 4, offsetof(fa_hopper_params, f.flex))
FA_PARAMS(fa_hopper_biased_params, FA_PARAMS_HOPPER_BIASED, 5, offsetof(fa_hopper_biased_params, call.f.flex))
FA_PARAMS(fa_hopper_cache_params, FA_PARAMS_HOPPER_CACHE, 4, -1)
FA_PARAMS(fa_hopper_backward_params, FA_PARAMS_HOPPER_BACKWARD, 6,
          offsetof(fa_hopper_backward_params, b.forward.flex))
FA_PARAMS(fa_hopper_biased_backward_params, FA_PARAMS_HOPPER_BIASED_BACKWARD, 8,
          offsetof(fa_hopper_biased_backward_params, call.b.forward.flex))
FA_PARAMS(fa_cache_params, FA_PARAMS_CACHE, 0, -1)
FA_PARAMS(fa_hopper_latent_params, FA_PARAMS_HOPPER_LATENT, 1, -1)
FA_PARAMS(fa_cache_append_params, FA_PARAMS_CACHE_APPEND, 0, -1)
FA_PARAMS(fa_cache_gather_params, FA_PARAMS_CACHE_GATHER, 0, -1)
FA_PARAMS(fa_flex_lists_params, FA_PARAMS_FLEX_LISTS, 0, offsetof(fa_flex_lists_params, call.flex))
FA_PARAMS(fa_flex_exact_params, FA_PARAMS_FLEX_EXACT, 0, -1)
FA_PARAMS(fa_merge_params, FA_PARAMS_MERGE, 0, -1)
FA_PARAMS(fa_kernel_amax, FA_PARAMS_AMAX, 0, -1)
#undef FA_PARAMS

template <class P>
static constexpr fa_kernel kernel_row(fa_kernel k, const char *name, void (*entry)(const void *),
                                      const char *source, const char *only) {
  k.name = name;
  k.entry = entry;
  k.recipe.source = source;
  k.recipe.only = only;
  k.params = params_traits<P>::KIND;
  k.params_bytes = sizeof(P);
  k.n_maps = params_traits<P>::N_MAPS;
  k.flex_at = params_traits<P>::FLEX_AT;
  return k;
}

/* Of a kernel that is not compiled ahead of time. */
static constexpr fa_kernel at_run_time(fa_kernel k) {
  k.recipe.is_ahead_of_time = 0;
  return k;
}

/* Of one that knows nothing of elements. */
static constexpr fa_kernel describe_step(fa_kernel_step step, int n_threads) {
  fa_kernel k = {};
  k.recipe.is_ahead_of_time = 1;
  k.step = step;
  k.n_threads = n_threads;
  k.cluster = 1;
  return k;
}

template <class T> static constexpr fa_dtype dtype_of() {
  return std::is_same<T, f32>::value ? FA_F32 : std::is_same<T, f16>::value ? FA_F16 : FA_BF16;
}

/* Of a cache of 8 or 4 bits. */
template <class E> static constexpr fa_dtype dtype_of_bytes() {
  return std::is_same<E, e4m3>::value   ? FA_E4M3
         : std::is_same<E, e5m2>::value ? FA_E5M2
         : std::is_same<E, e2m1>::value ? FA_E2M1
                                        : FA_I8;
}

/* Of one for elements T and any head dims, that can do all that its family can. */
template <class T> static constexpr fa_kernel describe_type(fa_kernel_step step, int n_threads) {
  fa_kernel k = describe_step(step, n_threads);
  k.dtype = dtype_of<T>();
  k.ability.bf16 = k.dtype == FA_BF16;
  k.ability.head_dim = INT_MAX;
  k.ability.varlen = k.ability.ordered = k.ability.chunk = k.ability.sinks = 1;
  return k;
}

/* With the tiles of a configuration. */
template <class C> static constexpr fa_kernel describe_tiles(fa_kernel_step step) {
  fa_kernel k = describe_type<typename C::T>(step, C::THREADS);
  k.block_m = C::BM;
  k.block_n = C::BN;
  k.shared_bytes = C::SHARED_BYTES;
  return k;
}

} // namespace fa

#endif
