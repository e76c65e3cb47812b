/* Laws about a KV cache: where keys are stored and when they arrived makes no difference. */
#include "fuzz/laws/parts.h"

#include <string.h>

void fa_law_slot_at(const fa_law_side *s, int64_t b, int64_t slot, int64_t *index) {
  const fa_kvcache *c = &s->p.kvcache;
  index[0] = c->batch_idx.n ? c->batch_idx.v[b] : b;
  index[1] = slot;
  if (c->page_size > 0) {
    const fa_tensor *table = &s->in.t[FA_T_BLOCK_TABLE];
    index[0] = (int64_t)fa_tensor_get(table, (const int64_t[FA_MAX_RANK]){b, slot / c->page_size});
    index[1] = slot % c->page_size;
  }
}

/* Copies one slot, all heads and elements. */
static void copy_slot(const fa_tensor *from, int64_t *at, const fa_tensor *to, int64_t *put) {
  for (at[2] = put[2] = 0; at[2] < from->shape[2]; at[2] = ++put[2])
    for (at[3] = put[3] = 0; at[3] < from->shape[3]; at[3] = ++put[3])
      memcpy(to->data + fa_tensor_offset(to, put), from->data + fa_tensor_offset(from, at),
             fa_dtype_size(from->dtype));
}

static void copy_all(const fa_tensor *from, const fa_tensor *to) {
  int64_t index[FA_MAX_RANK];
  const int64_t n = from->data ? fa_tensor_count(from) : 0;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(from, e, index);
    memcpy(to->data + fa_tensor_offset(to, index), from->data + fa_tensor_offset(from, index),
           fa_dtype_size(from->dtype));
  }
}

/* Sets up the other side, for a problem with other lengths or without pages, and what both have in common. */
static fa_status make_other(fa_law_work *w, const fa_problem *p, fa_error *err) {
  static const fa_tensor_id same[] = {FA_T_Q, FA_T_K_NEW, FA_T_V_NEW, FA_T_BIAS};
  const fa_status status = fa_law_make_for(w, &w->other, p, err);
  for (size_t i = 0; status == FA_OK && i < sizeof same / sizeof *same; ++i)
    if (w->other.in.t[same[i]].data) copy_all(&w->base.in.t[same[i]], &w->other.in.t[same[i]]);
  return status;
}

/* If the base's rows are aligned differently it may use another kernel, because the other side's tensors are
 * plain. */
static fa_law_mode mode_of(const fa_law_work *w) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K, FA_T_V, FA_T_O};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i)
    if (!fa_stride_recipe_is_plain(&w->c->strides[ids[i]])) return FA_LAW_BOUND;
  return FA_LAW_BITS;
}

static bool map_slots(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  (void)ctx;
  if (fa_tensor_describe(id)->direction != FA_TENSOR_UPDATED) return true;
  const fa_kvcache *c = &w->base.p.kvcache;
  if (index[1] >= c->len.v[index[0]] + c->n_new) return false;
  fa_law_slot_at(&w->base, index[0], index[1], link->at);
  return true;
}

static fa_status compare_caches(fa_law_work *w, fa_law_map *map, fa_error *err) {
  const fa_law_mode mode = mode_of(w);
  const fa_law_modes modes = {.of = {[FA_T_O] = mode, [FA_T_LSE] = mode}};
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  FA_LAW_TRY(fa_law_compare_all(w, &w->other, modes, map, NULL, err));
  FA_LAW_TRY(fa_law_compare(w, &w->other, FA_T_K, FA_LAW_BITS, map, NULL, err));
  return fa_law_compare(w, &w->other, FA_T_V, FA_LAW_BITS, map, NULL, err);
}

fa_status fa_law_cache_contiguous(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->kvcache.page_size == 0, "the cache has no pages");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_problem q;
  if (fa_problem_copy(&q, p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  q.kvcache.page_size = q.kvcache.shared_pages = 0;
  const fa_status status = make_other(w, &q, err);
  fa_problem_free(&q);
  FA_LAW_TRY(status);
  for (int id = FA_T_K; id <= FA_T_V; ++id)
    for (int64_t b = 0; b < p->batch; ++b)
      for (int64_t slot = 0; slot < p->kvcache.len.v[b]; ++slot) {
        int64_t at[FA_MAX_RANK], put[FA_MAX_RANK];
        fa_law_slot_at(&w->base, b, slot, at);
        fa_law_slot_at(&w->other, b, slot, put);
        copy_slot(&w->base.in.t[id], at, &w->other.in.t[id], put);
      }
  return compare_caches(w, map_slots, err);
}

/* Writes the new keys and values into a copy of the base's cache. */
static void put_new(fa_law_work *w) {
  const fa_kvcache *c = &w->base.p.kvcache;
  static const fa_tensor_id ids[][2] = {{FA_T_K, FA_T_K_NEW}, {FA_T_V, FA_T_V_NEW}};
  if (c->page_size > 0) copy_all(&w->base.in.t[FA_T_BLOCK_TABLE], &w->other.in.t[FA_T_BLOCK_TABLE]);
  for (int i = 0; i < 2; ++i) {
    const fa_tensor *cache = &w->other.in.t[ids[i][0]], *fresh = &w->base.in.t[ids[i][1]];
    copy_all(&w->base.in.t[ids[i][0]], cache);
    for (int64_t b = 0; b < w->base.p.batch; ++b)
      for (int64_t n = 0; n < c->n_new; ++n) {
        int64_t at[FA_MAX_RANK] = {b, n}, put[FA_MAX_RANK];
        fa_law_slot_at(&w->other, b, c->len.v[b] + n, put);
        copy_slot(fresh, at, cache, put);
      }
  }
}

fa_status fa_law_cache_appended(fa_law_work *w, fa_error *err) {
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->kvcache.n_new == 0, "there are no new keys");
  FA_SKIP_IF(p->kvcache.rotary_dim > 0, "queries turn by how many keys there were");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  fa_problem q;
  if (fa_problem_copy(&q, p) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  for (int64_t b = 0; b < p->batch; ++b) q.kvcache.len.v[b] += (int32_t)p->kvcache.n_new;
  q.kvcache.n_new = 0;
  const fa_status status = make_other(w, &q, err);
  fa_problem_free(&q);
  FA_LAW_TRY(status);
  put_new(w);
  return compare_caches(w, NULL, err);
}

/* ---- one sequence by itself ---- */

static bool map_sequence(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                         fa_law_link *link) {
  const int64_t *b = ctx;
  (void)w, (void)id;
  link->at[0] = *b + index[0];
  return true;
}

/* Copies the sequence's rows of per-sequence tensors, and its part of the caches, wherever that is. */
static void copy_sequence(fa_law_work *w, int64_t b) {
  static const fa_tensor_id ids[] = {FA_T_Q, FA_T_K_NEW, FA_T_V_NEW};
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
    const fa_tensor *from = &w->base.in.t[ids[i]], *to = &w->other.in.t[ids[i]];
    for (int64_t n = 0; to->data && n < to->shape[1]; ++n) {
      int64_t at[FA_MAX_RANK] = {b, n}, put[FA_MAX_RANK] = {0, n};
      copy_slot(from, at, to, put);
    }
  }
  for (int id = FA_T_K; id <= FA_T_V; ++id)
    for (int64_t slot = 0; slot < w->base.p.kvcache.len.v[b]; ++slot) {
      int64_t at[FA_MAX_RANK], put[FA_MAX_RANK];
      fa_law_slot_at(&w->base, b, slot, at);
      fa_law_slot_at(&w->other, 0, slot, put);
      copy_slot(&w->base.in.t[id], at, &w->other.in.t[id], put);
    }
}

/* Compares what both runs appended to the sequence's keys. */
static void compare_appended(fa_law_work *w, int64_t b, fa_tensor_id id) {
  const fa_tensor *want = &w->base.out.t[id], *got = &w->other.out.t[id];
  const int64_t n = w->base.p.kvcache.n_new * got->shape[2] * got->shape[3];
  int64_t bad = 0, at[FA_MAX_RANK], put[FA_MAX_RANK], first[FA_MAX_RANK] = {0};
  double shown[2] = {0, 0};
  for (int64_t e = 0; e < n; ++e) {
    const int64_t slot = w->base.p.kvcache.len.v[b] + e / (got->shape[2] * got->shape[3]);
    fa_law_slot_at(&w->base, b, slot, at);
    fa_law_slot_at(&w->other, 0, slot, put);
    at[2] = put[2] = e / got->shape[3] % got->shape[2];
    at[3] = put[3] = e % got->shape[3];
    if (memcmp(got->data + fa_tensor_offset(got, put), want->data + fa_tensor_offset(want, at),
               fa_dtype_size(got->dtype)) == 0)
      continue;
    if (bad++) continue;
    memcpy(first, put, sizeof first);
    shown[0] = fa_tensor_get(got, put), shown[1] = fa_tensor_get(want, at);
  }
  w->n_compared += n;
  if (bad) fa_law_mismatch(w, id, bad, n, got, first, shown[0], shown[1], -1);
}

fa_status fa_law_compare_cached_sequence(fa_law_work *w, int64_t b, fa_error *err) {
  fa_problem p;
  fa_status status = fa_law_sequence_problem(&w->base.p, b, &p, err);
  if (status != FA_OK) return status;
  status = fa_law_make_for(w, &w->other, &p, err);
  fa_problem_free(&p);
  FA_LAW_TRY(status);
  copy_sequence(w, b);
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  const fa_law_mode mode = fa_law_chooses_splits(w) ? FA_LAW_BOUND : mode_of(w);
  const fa_law_modes modes = {.of = {[FA_T_O] = mode, [FA_T_LSE] = mode}};
  FA_LAW_TRY(fa_law_compare_all(w, &w->other, modes, map_sequence, &b, err));
  compare_appended(w, b, FA_T_K);
  compare_appended(w, b, FA_T_V);
  return FA_OK;
}
