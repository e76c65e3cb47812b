#include "gpu/kernels/registry/cache_append.h"

#include "gpu/kernels/cache/append.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name, T)                                                                                    \
  static void name(const void *params) {                                                                     \
    fa::cache_append<fa::T>(*static_cast<const fa_cache_append_params *>(params));                                 \
  }
#include "gpu/kernels/cache/append_list.h"
#endif

#define FA_ENTRY(name, T) {#name, FA_ON_HOST(name), {"cache/append", "FA_ENTRY(" #name "," #T ")", 1}},
static const fa_kernel_entry kernels[] = {
#include "gpu/kernels/cache/append_list.h"
};

const fa_kernel_entry *fa_cache_append_find(int bf16) {
  return &kernels[bf16 ? 1 : 0];
}

const char *fa_cache_append_name(int i) {
  return i < static_cast<int>(sizeof kernels / sizeof *kernels) ? kernels[i].name : nullptr;
}
