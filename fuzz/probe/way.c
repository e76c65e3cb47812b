#include "fuzz/probe/way.h"

#include <stddef.h>
#include <stdlib.h>

/* Page sizes: those that most caches take, and the ones that some insist on. */
static const probe_way ways[] = {
    {"separate sequences", PROBE_DENSE, 0, false},
    {"packed sequences", PROBE_PACKED, 0, false},
    {"a cache", PROBE_CACHE, 0, false},
    {"a cache in pages of 16", PROBE_CACHE, 16, false},
    {"a cache in pages of 64", PROBE_CACHE, 64, false},
    {"a cache in pages of 256", PROBE_CACHE, 256, false},
    {"one query a sequence", PROBE_DENSE, 0, true},
    {"one query a sequence, over a cache", PROBE_CACHE, 0, true},
    {"one query a sequence, over a cache in pages of 16", PROBE_CACHE, 16, true},
    {"one query a sequence, over a cache in pages of 64", PROBE_CACHE, 64, true},
    {"one query a sequence, over a cache in pages of 256", PROBE_CACHE, 256, true},
};

const probe_way *probe_way_at(int i) {
  return i >= 0 && (size_t)i < sizeof ways / sizeof *ways ? &ways[i] : NULL;
}

fa_family probe_way_family(const probe_way *w, int i) {
  static const fa_family of_tensors[] = {FA_FLASH, FA_MEMEFF, FA_FLEX};
  if (w->storage == PROBE_CACHE) return i == 0 ? FA_KVCACHE : FA_N_FAMILIES;
  return i < 3 ? of_tensors[i] : FA_N_FAMILIES;
}

/* [batch]: as many keys for every sequence, none for the first if so wanted. */
static bool set_lengths(fa_int32_array *a, int64_t batch, int64_t keys, bool no_keys) {
  if (fa_int32_array_set(a, NULL, batch) != FA_OK) return false;
  for (int64_t b = 0; b < batch; ++b) a->v[b] = b == 0 && no_keys ? 0 : (int32_t)keys;
  return true;
}

static bool clear(fa_problem *p) {
  return fa_int32_array_set(&p->cu_seqlens_q, NULL, 0) == FA_OK &&
         fa_int32_array_set(&p->cu_seqlens_k, NULL, 0) == FA_OK &&
         fa_int32_array_set(&p->seqused_k, NULL, 0) == FA_OK &&
         fa_int32_array_set(&p->kvcache.len, NULL, 0) == FA_OK;
}

/* Masks, biases by distance and dropout depend on which row of its sequence a query is. */
static bool depends_on_position(const fa_problem *p) {
  return p->mask.type != FA_MASK_NONE || p->alibi.present || p->dropout.p > 0;
}

static bool set_packed(fa_problem *p) {
  const int32_t q[2] = {0, (int32_t)p->seqlen_q}, k[2] = {0, (int32_t)p->seqlen_k};
  return fa_int32_array_set(&p->cu_seqlens_q, q, 2) == FA_OK &&
         fa_int32_array_set(&p->cu_seqlens_k, k, 2) == FA_OK;
}

bool probe_way_apply(const probe_way *w, int64_t rows, int64_t keys, bool no_keys, fa_problem *p,
                     const char **why) {
  const bool cache = w->storage == PROBE_CACHE;
  const int64_t page = w->page_size ? w->page_size : 1;
  *why = "out of memory";
  if (!clear(p)) return false;
  *why = "one query a sequence: the question is about where a row stands";
  if (w->rows_are_sequences && (depends_on_position(p) || p->backward)) return false;
  *why = "over a cache there is no backward";
  if (cache && p->backward) return false;
  p->batch = w->rows_are_sequences ? rows : 1;
  p->seqlen_q = w->rows_are_sequences ? 1 : rows;
  p->seqlen_k = cache ? (keys + page - 1) / page * page : keys;
  p->kvcache.present = cache;
  p->kvcache.page_size = w->page_size;
  *why = "out of memory";
  if (w->storage == PROBE_PACKED && !set_packed(p)) return false;
  if (cache) return set_lengths(&p->kvcache.len, p->batch, keys, no_keys);
  return !no_keys || set_lengths(&p->seqused_k, p->batch, keys, true);
}

void probe_way_row(const probe_way *w, int64_t s, int64_t at[2]) {
  at[0] = w->rows_are_sequences ? s : 0;
  at[1] = w->rows_are_sequences ? 0 : s;
}

bool probe_way_key(const probe_way *w, const fa_problem *p, const fa_tensor *block_table, int64_t b,
                   int64_t s, int64_t at[2]) {
  at[0] = b;
  at[1] = s;
  if (w->storage == PROBE_CACHE && s >= p->kvcache.len.v[b]) return false;
  if (!w->page_size) return true;
  const int64_t entry[2] = {b, s / w->page_size};
  at[0] = (int64_t)fa_tensor_get(block_table, entry);
  at[1] = s % w->page_size;
  return true;
}
