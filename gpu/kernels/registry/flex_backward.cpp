#include "gpu/kernels/registry/flex.h"
#include "gpu/kernels/memeff/backward_keys.cuh"
#include "gpu/kernels/memeff/dbias.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T, kernel, BN, VC)                                                                    \
  static void name(const void *params) {                                                                     \
    fa::kernel<fa::memeff_backward_config<fa::T, fa::flex_mods, BN, VC>>(                                      \
        *static_cast<const fa_memeff_backward_params *>(params));                                              \
  }
#include "gpu/kernels/flex/backward_list.h"
static void flex_exact_clear(const void *params) {
  fa::flex_exact_clear(*static_cast<const fa_flex_exact_params *>(params));
}
static void flex_exact_round(const void *params) {
  fa::flex_exact_round(*static_cast<const fa_flex_exact_params *>(params));
}
#endif

static const fa_kernel_entry entries[] = {
#define FA_ENTRY(name, T, kernel, BN, VC)                                                                    \
  {#name, FA_ON_HOST(name), {"flex/backward", "FA_ENTRY(" #name "," #T "," #kernel "," #BN "," #VC ")", 0}},
#include "gpu/kernels/flex/backward_list.h"
    {"flex_exact_clear", FA_ON_HOST(flex_exact_clear), {"flex/exact", nullptr, 1}},
    {"flex_exact_round", FA_ON_HOST(flex_exact_round), {"flex/exact", nullptr, 1}}};

enum { KEYS, QUERIES, DBIAS, N_OF_TYPE, SHORT = N_OF_TYPE, CLEAR = 6 * N_OF_TYPE, ROUND };
static_assert(sizeof entries / sizeof *entries == ROUND + 1, "three types in the list, of two sizes");

/* first: of the type's entries in the list. */
template <class T, int BN, int VC> static fa_flex_backward_kernels backward(fa_dtype dtype, int first) {
  typedef fa::memeff_backward_config<T, fa::flex_mods, BN, VC> C;
  return {{entries[CLEAR], FA_FLEX_EXACT_ELEMENTS, 0, FA_FLEX_EXACT_THREADS, 0},
          fa_memeff_backward_find(dtype)->prepare,
          {entries[first + KEYS], C::BM, C::VC, C::THREADS, C::KEYS_SHARED_BYTES},
          {entries[first + QUERIES], C::BM, C::VC, C::THREADS, C::QUERIES_SHARED_BYTES},
          {entries[first + DBIAS], C::BM, C::BN, C::THREADS, C::DBIAS_SHARED_BYTES},
          {entries[ROUND], FA_FLEX_EXACT_ELEMENTS, 0, FA_FLEX_EXACT_THREADS, 0},
          C::BM,
          C::BN};
}

static const struct {
  fa_dtype dtype;
  fa_flex_backward_kernels kernels, for_short;
} backwards[] = {
#define FA_ROW(dtype, T, first)                                                                              \
  { dtype, backward<fa::T, 64, 64>(dtype, first), backward<fa::T, 16, 32>(dtype, first + SHORT) }
    FA_ROW(FA_F32, f32, 0), FA_ROW(FA_F16, f16, 2 * N_OF_TYPE), FA_ROW(FA_BF16, bf16, 4 * N_OF_TYPE)};

const fa_flex_backward_kernels *fa_flex_backward_find(fa_dtype dtype) {
  for (const auto &r : backwards)
    if (r.dtype == dtype) return &r.kernels;
  return nullptr;
}
const fa_flex_backward_kernels *fa_flex_backward_find_short(fa_dtype dtype) {
  for (const auto &r : backwards)
    if (r.dtype == dtype) return &r.for_short;
  return nullptr;
}

const char *fa_flex_backward_name(int i) {
  return i <= ROUND ? entries[i].name : nullptr;
}
