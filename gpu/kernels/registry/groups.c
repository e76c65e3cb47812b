/* Kernels in the groups in which planners launch them. */
#include "gpu/kernels/registry/device.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/kernels/registry/tables.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* ---- flash backward ---- */

static fa_kernel_entry entry_of(const fa_kernel *k) {
  return k ? (fa_kernel_entry){k->name, k->entry, k->recipe} : (fa_kernel_entry){.name = NULL};
}

static fa_kernel_main main_of(const fa_kernel *k) {
  return (fa_kernel_main){entry_of(k), k->block_m, k->block_n, k->n_threads, k->shared_bytes, k->subtracts_first};
}

/* Where the kernel goes that does `step` around a main one; NULL: nowhere. */
static fa_kernel_entry *place_of(fa_flash_backward_kernels *to, fa_kernel_step step) {
  switch (step) {
  case FA_STEP_PREPARE: return &to->prepare;
  case FA_STEP_PREPARE_ONLY: return &to->prepare_only;
  case FA_STEP_CLEAR: return &to->clear;
  case FA_STEP_CONVERT: return &to->convert;
  case FA_STEP_CONVERT_KEYS: return &to->convert_keys;
  case FA_STEP_DBIAS_CLEAR: return &to->dbias_clear;
  case FA_STEP_DBIAS_CONVERT: return &to->dbias_convert;
  default: return NULL;
  }
}

static int find_flash_backward(fa_kernel_ability wanted, const fa_kernel_device *device, fa_flash_backward_kernels *out) {
  const fa_kernel_table *t = &fa_kernels_flash_backward;
  const fa_kernel *main = fa_kernel_first(t, FA_STEP_BY_KEYS, &wanted, device);
  if (!main) return 0;
  *out = (fa_flash_backward_kernels){.by_keys = main_of(main), .head_dim = main->ability.head_dim};
  /* One by queries goes with it if it has the same workspace and reads the same from there. */
  const fa_kernel *other = fa_kernel_first(t, FA_STEP_BY_QUERIES, &wanted, device);
  if (other && other->ability.head_dim == out->head_dim && other->subtracts_first == main->subtracts_first)
    out->by_queries = main_of(other);
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k) {
    fa_kernel_entry *to = place_of(out, k->step);
    const bool any_dim = k->ability.head_dim == INT_MAX;
    if (to && k->dtype == main->dtype && (any_dim || k->ability.head_dim == out->head_dim)) *to = entry_of(k);
  }
  return out->prepare.name != NULL;
}

/* Layer after layer asks the same, and three walks over all rows are most of what a backward call takes to plan. */
int fa_flash_backward_find(fa_kernel_ability wanted, const fa_kernel_device *device, fa_flash_backward_kernels *out) {
  static _Thread_local fa_kernel_ability last;
  static _Thread_local fa_kernel_device last_device;
  static _Thread_local fa_flash_backward_kernels found; /* by_keys.kernel.name NULL: nothing is here */
  wanted.p_debug = 0;
  if (device && found.by_keys.kernel.name && memcmp(&last, &wanted, sizeof last) == 0 && fa_kernel_device_same(&last_device, device)) {
    *out = found;
    return 1;
  }
  if (!find_flash_backward(wanted, device, out)) return 0;
  if (!device) return 1;
  last = wanted;
  last_device = *device;
  found = *out;
  return 1;
}

/* ---- those that stay the same, made once ---- */

enum { N_TYPES = 3, MAX_SINGLES = 4, N_LISTS = 4 };
static fa_memeff_backward_kernels memeff[N_TYPES]; /* by fa_dtype: FA_F16, FA_BF16, FA_F32 */
static fa_memeff_kernel singles[MAX_SINGLES];      /* in ascending order of their columns */
static int n_singles;
static fa_flex_backward_kernels flex[N_TYPES], flex_short[N_TYPES];
enum { N_EIGHT_APPENDS = 6 }; /* of three types, and two of new keys */
typedef struct eight_append {
  fa_dtype cache_dtype, dtype;
  fa_kernel_entry kernel;
} eight_append;
static eight_append eight_appends[N_EIGHT_APPENDS];
static fa_kernel_entry appends[N_TYPES][2], gather, amax_clear, lists[N_LISTS]; /* appends: by chunks, by elements */

static fa_memeff_kernel memeff_of(const fa_kernel *k) {
  return k ? (fa_memeff_kernel){entry_of(k), k->block_m, k->block_cols, k->n_threads, k->shared_bytes}
           : (fa_memeff_kernel){.block_m = 0};
}

static const fa_kernel *first(const fa_kernel_table *t, fa_kernel_step step) {
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->step == step) return k;
  return NULL;
}

static fa_memeff_backward_kernels memeff_group(fa_dtype dtype) {
  const fa_kernel_table *t = &fa_kernels_memeff_backward;
  return (fa_memeff_backward_kernels){.prepare = memeff_of(fa_kernel_of_type(t, FA_STEP_PREPARE, dtype)),
                                      .keys = memeff_of(fa_kernel_of_type(t, FA_STEP_KEYS, dtype)),
                                      .queries = memeff_of(fa_kernel_of_type(t, FA_STEP_QUERIES, dtype)),
                                      .dbias = memeff_of(fa_kernel_of_type(t, FA_STEP_DBIAS, dtype)),
                                      .dsinks = memeff_of(fa_kernel_of_type(t, FA_STEP_DSINKS, dtype))};
}

/* Short problems have the smaller of the two tiles that a type has. */
static const fa_kernel *flex_kernel(fa_kernel_step step, fa_dtype dtype, bool is_short) {
  const fa_kernel_table *t = &fa_kernels_flex_backward;
  const fa_kernel *found = NULL;
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k) {
    if (k->step != step || k->dtype != dtype) continue;
    if (!found || (k->block_n < found->block_n) == is_short) found = k;
  }
  return found;
}

static fa_flex_backward_kernels flex_group(fa_dtype dtype, bool is_short) {
  const fa_kernel *keys = flex_kernel(FA_STEP_KEYS, dtype, is_short);
  return (fa_flex_backward_kernels){.clear = memeff_of(first(&fa_kernels_flex_exact, FA_STEP_CLEAR)),
                                    .prepare = memeff[dtype].prepare,
                                    .keys = memeff_of(keys),
                                    .queries = memeff_of(flex_kernel(FA_STEP_QUERIES, dtype, is_short)),
                                    .dbias = memeff_of(flex_kernel(FA_STEP_DBIAS, dtype, is_short)),
                                    .round = memeff_of(first(&fa_kernels_flex_exact, FA_STEP_ROUND)),
                                    .block_m = keys->block_m,
                                    .block_n = keys->block_n};
}

static void make_groups(void) {
  static const fa_kernel_step steps[N_LISTS] = {FA_STEP_MAP, FA_STEP_TILES, FA_STEP_BLOCKS, FA_STEP_MASK};
  for (int i = 0; i < N_TYPES; ++i) {
    memeff[i] = memeff_group((fa_dtype)i);
    flex[i] = flex_group((fa_dtype)i, false);
    flex_short[i] = flex_group((fa_dtype)i, true);
  }
  for (int i = 0; i < N_LISTS; ++i)
    lists[i] = entry_of(first(i == FA_FLEX_LISTS_MASK ? &fa_kernels_flex_mask : &fa_kernels_flex_lists, steps[i]));
  for (int i = 0; i < N_TYPES; ++i) {
    appends[i][0] = entry_of(fa_kernel_of_type(&fa_kernels_cache_append, FA_STEP_APPEND, (fa_dtype)i));
    appends[i][1] = entry_of(fa_kernel_of_type(&fa_kernels_cache_append, FA_STEP_APPEND_ELEMENTS, (fa_dtype)i));
  }
  int n = 0;
  const fa_kernel_table *of_bytes = &fa_kernels_cache_append;
  for (const fa_kernel *k = of_bytes->v; k < of_bytes->v + of_bytes->n; ++k)
    if (k->step == FA_STEP_APPEND_EIGHT && n < N_EIGHT_APPENDS)
      eight_appends[n++] = (eight_append){(fa_dtype)k->ability.cache_dtype, k->dtype, entry_of(k)};
  gather = entry_of(first(&fa_kernels_cache_gather, FA_STEP_GATHER));
  amax_clear = entry_of(first(&fa_kernels_cache_forward, FA_STEP_CLEAR));
  const fa_kernel_table *t = &fa_kernels_memeff_backward;
  for (const fa_kernel *k = t->v; k < t->v + t->n; ++k)
    if (k->step == FA_STEP_BY_KEYS && n_singles < MAX_SINGLES) singles[n_singles++] = memeff_of(k);
}

static bool is_type(fa_dtype dtype) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_groups);
  return (int)dtype < N_TYPES;
}

const fa_memeff_backward_kernels *fa_memeff_backward_find(fa_dtype dtype) {
  return is_type(dtype) ? &memeff[dtype] : NULL;
}

const fa_memeff_kernel *fa_memeff_single_find(fa_dtype dtype, int64_t widest) {
  if (!is_type(dtype) || dtype != FA_F32) return NULL;
  for (int i = 0; i < n_singles; ++i)
    if (widest <= singles[i].block_cols) return &singles[i];
  return NULL;
}

const fa_flex_backward_kernels *fa_flex_backward_find(fa_dtype dtype) {
  return is_type(dtype) ? &flex[dtype] : NULL;
}
const fa_flex_backward_kernels *fa_flex_backward_find_short(fa_dtype dtype) {
  return is_type(dtype) ? &flex_short[dtype] : NULL;
}

const fa_kernel_entry *fa_cache_append_find(fa_dtype dtype, bool by_elements) {
  return is_type(dtype) ? &appends[dtype][by_elements] : NULL;
}

const fa_kernel_entry *fa_cache_append_eight_find(fa_dtype cache_dtype, fa_dtype dtype) {
  for (int i = 0; i < N_EIGHT_APPENDS && is_type(dtype); ++i)
    if (eight_appends[i].cache_dtype == cache_dtype && eight_appends[i].dtype == dtype) return &eight_appends[i].kernel;
  return NULL;
}

const fa_kernel_entry *fa_cache_gather_find(void) {
  return is_type(FA_F16) ? &gather : NULL;
}

const fa_kernel_entry *fa_amax_clear_find(void) {
  return is_type(FA_F16) ? &amax_clear : NULL;
}

const fa_kernel_entry *fa_flex_lists_find(fa_flex_lists_kernel which) {
  return is_type(FA_F16) ? &lists[which] : NULL;
}
