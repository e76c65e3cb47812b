#include "tests/plans/params.h"

#include "gpu/kernels/params/attention.h"
#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/params/flash_backward.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/params/hopper_cache.h"
#include "gpu/kernels/params/latent.h"
#include "gpu/kernels/params/memeff_backward.h"
#include "gpu/kernels/params/merge.h"
#include "gpu/kernels/registry/kernel.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef union any_params {
  uint64_t words[512];
  fa_tensor_map maps[8];
  fa_attention_params forward;
  fa_backward_params backward;
  fa_memeff_backward_params memeff_backward;
  fa_hopper_params hopper;
  fa_hopper_biased_params hopper_biased;
  fa_hopper_cache_params hopper_cache;
  fa_hopper_backward_params hopper_backward;
  fa_hopper_biased_backward_params hopper_biased_backward;
  fa_flex_lists_params lists;
  fa_flex_exact_params exact;
  fa_cache_params cache;
  fa_hopper_latent_params latent;
  fa_cache_append_params append;
  fa_cache_gather_params gather;
  fa_merge_params merge;
  fa_kernel_amax amax;
} any_params;

/* ---- meaningless parts of a struct ---- */

#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define CLEAR_PADDING(p) __builtin_clear_padding(p)
#endif
#endif
#ifndef CLEAR_PADDING
#define CLEAR_PADDING(p) ((void)(p)) /* reveals a field that the planner leaves unset */
#endif

static void clear_forward(any_params *p) {
  CLEAR_PADDING(&p->forward);
}
static void clear_backward(any_params *p) {
  CLEAR_PADDING(&p->backward);
}
static void clear_memeff_backward(any_params *p) {
  CLEAR_PADDING(&p->memeff_backward);
}
/* Counters are assigned in turn; the plan only decides whether there is one. */
static void clear_hopper(any_params *p) {
  CLEAR_PADDING(&p->hopper);
  if (p->hopper.tiles.counter > 0) p->hopper.tiles.counter = 0;
}
static void clear_hopper_biased(any_params *p) {
  CLEAR_PADDING(&p->hopper_biased);
  if (p->hopper_biased.call.tiles.counter > 0) p->hopper_biased.call.tiles.counter = 0;
}
static void clear_hopper_cache(any_params *p) {
  CLEAR_PADDING(&p->hopper_cache);
  if (p->hopper_cache.tiles.counter > 0) p->hopper_cache.tiles.counter = 0;
}
static void clear_hopper_backward(any_params *p) {
  CLEAR_PADDING(&p->hopper_backward);
}
static void clear_hopper_biased_backward(any_params *p) {
  CLEAR_PADDING(&p->hopper_biased_backward);
}
static void clear_lists(any_params *p) {
  CLEAR_PADDING(&p->lists);
}
static void clear_exact(any_params *p) {
  CLEAR_PADDING(&p->exact);
}
static void clear_cache(any_params *p) {
  CLEAR_PADDING(&p->cache);
}
static void clear_latent(any_params *p) {
  CLEAR_PADDING(&p->latent);
}
static void clear_append(any_params *p) {
  CLEAR_PADDING(&p->append);
}
static void clear_gather(any_params *p) {
  CLEAR_PADDING(&p->gather);
}

static void clear_merge(any_params *p) {
  CLEAR_PADDING(&p->merge);
}
static void clear_amax(any_params *p) {
  CLEAR_PADDING(&p->amax);
}

static void clear(any_params *p, fa_params_kind kind) {
  static void (*const of[FA_N_PARAMS])(any_params * p) = {[FA_PARAMS_ATTENTION] = clear_forward,
                                                          [FA_PARAMS_BACKWARD] = clear_backward,
                                                          [FA_PARAMS_MEMEFF_BACKWARD] = clear_memeff_backward,
                                                          [FA_PARAMS_HOPPER] = clear_hopper,
                                                          [FA_PARAMS_HOPPER_BIASED] = clear_hopper_biased,
                                                          [FA_PARAMS_HOPPER_CACHE] = clear_hopper_cache,
                                                          [FA_PARAMS_HOPPER_BACKWARD] = clear_hopper_backward,
                                                          [FA_PARAMS_HOPPER_BIASED_BACKWARD] =
                                                              clear_hopper_biased_backward,
                                                          [FA_PARAMS_CACHE] = clear_cache,
                                                          [FA_PARAMS_HOPPER_LATENT] = clear_latent,
                                                          [FA_PARAMS_CACHE_APPEND] = clear_append,
                                                          [FA_PARAMS_CACHE_GATHER] = clear_gather,
                                                          [FA_PARAMS_FLEX_LISTS] = clear_lists,
                                                          [FA_PARAMS_FLEX_EXACT] = clear_exact,
                                                          [FA_PARAMS_MERGE] = clear_merge,
                                                          [FA_PARAMS_AMAX] = clear_amax};
  of[kind](p);
}

size_t plan_params_bytes(const char *kernel) {
  const fa_kernel *k = fa_kernel_find(kernel);
  return k ? k->params_bytes : 0;
}

/* ---- text ---- */

/* Pointers point into the memory itself or, if a tensor is empty or starts before it, into its guards. */
static const plan_place *place_of(const char *p, const plan_places *places) {
  for (int i = 0; i < places->n; ++i) {
    const plan_place *x = &places->v[i];
    if (p >= x->begin - FA_GUARD_BYTES && p < x->begin + x->bytes + FA_GUARD_BYTES) return x;
  }
  return NULL;
}

/* Small numbers are not addresses, and two of them in one word rarely look like one. */
static bool is_memory(uint64_t word) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  if (word >> 32 == 0 || word >> 47 != 0) return false;
  return msync((void *)(word / page * page), page, MS_ASYNC) == 0; /* fails where nothing is mapped */
}

static void print_word(FILE *out, int at, uint64_t word, const plan_places *places) {
  const plan_place *place = place_of((const char *)word, places);
  if (place)
    fprintf(out, "%5d %s%+lld\n", at, place->name, (long long)((const char *)word - place->begin));
  else if (is_memory(word))
    fprintf(out, "%5d ptr\n", at);
  else
    fprintf(out, "%5d %llx\n", at, (unsigned long long)word);
}

void plan_params_print(FILE *out, const char *kernel, const void *params, const plan_places *places) {
  static any_params copy;
  const fa_kernel *k = fa_kernel_find(kernel);
  FA_ASSERT(k && k->params_bytes <= sizeof copy && k->params_bytes % 8 == 0);
  memcpy(&copy, params, k->params_bytes);
  clear(&copy, k->params);
  for (int i = 0; i < k->n_maps; ++i)
    memset(copy.maps[i].bytes + sizeof(fa_tensor_box), 0, sizeof(fa_tensor_map) - sizeof(fa_tensor_box));
  for (size_t i = 0; i < k->params_bytes / 8; ++i) print_word(out, (int)i * 8, copy.words[i], places);
}
