#include "gpu/kernels/registry/flex_lists.h"

#include "gpu/kernels/flex/lists.cuh"

/* FA_TABLES_ONLY: for a library that has no host executor. */
#ifdef FA_TABLES_ONLY
#define FA_ON_HOST(name) nullptr
#else
#define FA_ON_HOST(name) name
#define FA_ENTRY(name)                                                                                       \
  static void name(const void *params) {                                                                     \
    fa::name(*static_cast<const fa_flex_lists_params *>(params));                                            \
  }
#include "gpu/kernels/flex/lists_list.h"
static void flex_mask_map(const void *params) {
  fa::flex_mask_map<fa::flex_mods>(*static_cast<const fa_flex_lists_params *>(params));
}
#endif

#define FA_ENTRY(name) {#name, FA_ON_HOST(name), {"flex/lists", "FA_ENTRY(" #name ")", 1}},
static const fa_kernel_entry kernels[] = {
#include "gpu/kernels/flex/lists_list.h"
};
static const fa_kernel_entry mask = {
    "flex_mask_map", FA_ON_HOST(flex_mask_map), {"flex/mask", "FA_ENTRY(flex_mask_map)", 0}};

const fa_kernel_entry *fa_flex_lists_find(fa_flex_lists_kernel which) {
  return which == FA_FLEX_LISTS_MASK ? &mask : &kernels[which];
}

const char *fa_flex_lists_name(int i) {
  return i < static_cast<int>(sizeof kernels / sizeof *kernels) ? kernels[i].name : nullptr;
}
