/* Finds kernels by the names of their device entry points, because the host's tables cannot be searched by
 * name. */
#include "tests/fake_cuda/parts.h"

#include "gpu/kernels/registry/flash_backward.h"
#include "gpu/kernels/registry/flash_forward.h"
#include "gpu/kernels/registry/hopper_backward.h"
#include "gpu/kernels/registry/hopper_forward.h"
#include "gpu/kernels/registry/cache_append.h"
#include "gpu/kernels/registry/cache.h"
#include "gpu/kernels/registry/memeff.h"
#include "tests/fake_cuda/flex.h"

#include <stdint.h>
#include <string.h>

static fa_simt_kernel find_memeff(const char *name) {
  static const fa_dtype dtypes[] = {FA_F32, FA_F16, FA_BF16};
  for (int i = 0; i < 6; ++i) {
    static const fa_kernel_device small = {.max_shared_bytes = 99 << 10};
    const fa_kernel *f = fa_memeff_forward_find(dtypes[i / 2], i % 2 ? 128 : 1, i % 2 ? 128 : 1, NULL);
    const fa_kernel *cut = fa_memeff_forward_find(dtypes[i / 2], 300, i % 2 ? 128 : 1, &small);
    if (strcmp(f->name, name) == 0) return f->entry;
    if (strcmp(cut->name, name) == 0) return cut->entry;
    const fa_memeff_backward_kernels *b = fa_memeff_backward_find(dtypes[i / 2]);
    const fa_kernel_entry all[] = {b->prepare.entry, b->keys.entry, b->queries.entry, b->dbias.entry};
    for (int n = 0; n < 4; ++n)
      if (strcmp(all[n].name, name) == 0) return all[n].entry;
  }
  for (int widest = 64; widest <= 128; widest *= 2) {
    const fa_memeff_kernel *single = fa_memeff_single_find(FA_F32, widest);
    if (strcmp(single->entry.name, name) == 0) return single->entry.entry;
  }
  return NULL;
}

static fa_simt_kernel find_cache(const char *name) {
  for (int i = 0; i < 33 << 3; ++i) {
    const fa_cache_ability wanted = {.bf16 = i & 1,
                                  .head_dim = 8 * (i >> 3),
                                  .packed_rows = i >> 1 & 1 ? 1 : 1 << 20,
                                  .unaligned = i >> 2 & 1};
    const fa_cache_kernel *k = fa_cache_forward_find(wanted, NULL);
    if (k && strcmp(k->name, name) == 0) return k->entry;
  }
  for (int bf16 = 0; bf16 < 2; ++bf16) {
    const fa_cache_kernel *combine = fa_cache_combine_find(bf16);
    const fa_kernel_entry *append = fa_cache_append_find(bf16);
    if (strcmp(combine->name, name) == 0) return combine->entry;
    if (strcmp(append->name, name) == 0) return append->entry;
  }
  return NULL;
}

fa_simt_kernel fake_entry(const char *name) {
  if (strncmp(name, "cache_", 6) == 0) return find_cache(name);
  if (strstr(name, "flex")) return fake_flex_entry(name);
  for (int i = 0; i < 33 << 10; ++i) {
    const fa_kernel_ability wanted = {.bf16 = i & 1,
                                     .head_dim = 8 * (i >> 10),
                                     .narrow = 8 * (i >> 10),
                                     .unaligned = i >> 1 & 1,
                                     .alibi = i >> 2 & 1,
                                     .softcap = i >> 3 & 1,
                                     .dropout = i >> 4 & 1,
                                     .p_debug = i >> 5 & 1,
                                     .bias = i >> 8 & 1,
                                     .linear_dropout = i >> 9 & 1};
    const fa_kernel_device any = {
        .max_shared_bytes = i >> 7 & 1 ? 99 * 1024 : SIZE_MAX, .compiles = i >> 6 & 1, .hopper = 1};
    const fa_kernel *const hopper[] = {fa_hopper_forward_find(wanted, 1, 0, &any),
                                             fa_hopper_forward_find(wanted, 1, 1, &any),
                                             fa_hopper_forward_find(wanted, FA_HOPPER_LONG, 0, &any),
                                             fa_hopper_backward_find(wanted, 0, 0, &any),
                                             fa_hopper_backward_find(wanted, 0, 1, &any),
                                             fa_hopper_backward_find(wanted, 1, 0, &any)};
    for (size_t n = 0; n < sizeof hopper / sizeof *hopper; ++n)
      if (hopper[n] && strcmp(hopper[n]->name, name) == 0) return hopper[n]->entry;
    const fa_kernel *k = fa_flash_forward_find(wanted, &any);
    if (k && strcmp(k->name, name) == 0) return k->entry;
    fa_flash_backward_kernels b;
    if (!fa_flash_backward_find(wanted, &any, &b)) continue;
    const fa_kernel_entry *all[] = {&b.prepare,          &b.prepare_only, &b.clear,
                                   &b.convert,          &b.convert_keys, &b.by_keys.kernel,
                                   &b.by_queries.kernel};
    for (size_t n = 0; n < sizeof all / sizeof *all; ++n)
      if (all[n]->name && strcmp(all[n]->name, name) == 0) return all[n]->entry;
  }
  return find_memeff(name);
}
