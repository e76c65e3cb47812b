#include "gpu/kernels/registry/cache.h"

#include "gpu/kernels/cache/combine.cuh"
#include "gpu/kernels/cache/forward.cuh"

#include <type_traits>

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T, D, shape, general)                                                                 \
  static void name(const void *params) {                                                                     \
    fa::cache_forward<fa::cache_config<fa::T, D, fa::shape, general>>(*static_cast<const fa_cache_params *>(params)); \
  }
#define FA_ENTRY_COMBINE(name, T)                                                                            \
  static void name(const void *params) {                                                                     \
    fa::cache_combine<fa::cache_combine_config<fa::T>>(*static_cast<const fa_cache_params *>(params));                \
  }
#include "gpu/kernels/cache/forward_list.h"
#endif

template <class C>
static constexpr fa_cache_kernel describe(const char *name, void (*entry)(const void *), const char *only) {
  return {name,
          entry,
          {"cache/forward", only, 1},
          {std::is_same<typename C::T, fa::bf16>::value, C::D, C::FEW ? C::BM : 0, C::GENERAL, C::GENERAL,
           C::GENERAL},
          C::BM,
          C::BN,
          C::THREADS,
          C::SHARED_BYTES > 75 * 1024 ? 2 : 3,
          C::SHARED_BYTES};
}

#define FA_ENTRY(name, T, D, shape, general)                                                                 \
  describe<fa::cache_config<fa::T, D, fa::shape, general>>(                                                     \
      #name, FA_ON_HOST(name), "FA_ENTRY(" #name "," #T "," #D "," #shape "," #general ")"),
#define FA_ENTRY_COMBINE(name, T)
static const fa_cache_kernel kernels[] = {
#include "gpu/kernels/cache/forward_list.h"
};

template <class C>
static constexpr fa_cache_kernel describe_combine(const char *name, void (*entry)(const void *),
                                               const char *only) {
  return {name,
          entry,
          {"cache/forward", only, 1},
          {std::is_same<typename C::T, fa::bf16>::value, 256, 0, 1, 1, 1},
          1,
          0,
          C::THREADS,
          8,
          C::SHARED_BYTES};
}

#define FA_ENTRY(name, T, D, shape, general)
#define FA_ENTRY_COMBINE(name, T)                                                                            \
  describe_combine<fa::cache_combine_config<fa::T>>(#name, FA_ON_HOST(name),                                    \
                                                 "FA_ENTRY_COMBINE(" #name "," #T ")"),
static const fa_cache_kernel combines[] = {
#include "gpu/kernels/cache/forward_list.h"
};

static bool is_able(const fa_cache_ability &k, const fa_cache_ability &wanted) {
  return k.bf16 == wanted.bf16 && wanted.head_dim <= k.head_dim &&
         (k.packed_rows == 0 || wanted.packed_rows <= k.packed_rows) && k.unaligned >= wanted.unaligned &&
         k.alibi >= wanted.alibi && k.softcap >= wanted.softcap;
}

const fa_cache_kernel *fa_cache_forward_find(fa_cache_ability wanted, const fa_kernel_device *device) {
  for (const fa_cache_kernel &k : kernels)
    if (is_able(k.ability, wanted) && (!device || k.shared_bytes <= device->max_shared_bytes)) return &k;
  return nullptr;
}

const fa_cache_kernel *fa_cache_combine_find(int bf16) {
  for (const fa_cache_kernel &k : combines)
    if (k.ability.bf16 == bf16) return &k;
  return nullptr;
}

const char *fa_cache_name(int i) {
  const int n = sizeof kernels / sizeof *kernels, n_combines = sizeof combines / sizeof *combines;
  return i < n ? kernels[i].name : i < n + n_combines ? combines[i - n].name : nullptr;
}
