/* Laws about order: runs, keys, heads and pages may come in any order. */
#include "cases/base/rng.h"
#include "fuzz/laws/parts.h"

#include <stdlib.h>
#include <string.h>

fa_status fa_law_repeat(fa_law_work *w, fa_error *err) {
  const int64_t n = w->c->repeat > 3 ? w->c->repeat : 3;
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  for (int64_t i = 1; i < n; ++i) {
    FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
    FA_LAW_TRY(fa_law_run(w, &w->other, err));
    FA_LAW_TRY(fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BITS), NULL, NULL, err));
  }
  return FA_OK;
}

/* Shuffles v[first .. first + n); from[i] is the old index of the element now at i. */
static void shuffle(fa_rng *r, int64_t *from, int64_t first, int64_t n) {
  for (int64_t i = n - 1; i > 0; --i) {
    const int64_t j = fa_rng_below(r, i + 1), x = from[first + i];
    from[first + i] = from[first + j];
    from[first + j] = x;
  }
}

static void copy_element(const fa_tensor *from, const int64_t *at, const fa_tensor *to,
                         const int64_t *index) {
  memcpy(to->data + fa_tensor_offset(to, index), from->data + fa_tensor_offset(from, at),
         fa_dtype_size(to->dtype));
}

/* Fills inputs of the other side, each element from its place in the base according to the map. */
static void rearrange(fa_law_work *w, const fa_tensor_id *ids, int n_ids, fa_law_map *map, const void *ctx) {
  for (int k = 0; k < n_ids; ++k) {
    const fa_tensor *from = &w->base.in.t[ids[k]], *to = &w->other.in.t[ids[k]];
    int64_t index[FA_MAX_RANK], n = fa_tensor_count(to);
    for (int64_t e = 0; e < n; ++e) {
      fa_tensor_unravel(to, e, index);
      fa_law_link link = {.factor = 1};
      memcpy(link.at, index, sizeof index);
      if (map(w, ctx, ids[k], index, &link)) copy_element(from, link.at, to, index);
    }
  }
}

/* ---- keys ---- */

static bool map_keys(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                     fa_law_link *link) {
  const int64_t *from = ctx;
  const int rank = w->base.in.t[id].rank;
  const fa_tensor_info *info = fa_tensor_describe(id);
  if (info->on_keys)
    link->at[rank - 3] = from[index[rank - 3]];
  else if (info->axes == FA_AXES_BIAS)
    link->at[3] = from[index[3]];
  return true;
}

fa_status fa_law_key_permutation(fa_law_work *w, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_K, FA_T_V, FA_T_BIAS};
  const fa_law_modes bound = fa_law_modes_all(FA_LAW_BOUND);
  const fa_problem *p = &w->c->problem;
  const bool *ek = w->c->strides[FA_T_K].expand, *ev = w->c->strides[FA_T_V].expand;
  FA_SKIP_IF(p->mask.type != FA_MASK_NONE || p->alibi.present || p->block_sparse.present,
             "keys are told apart by their position: mask, slopes or blocks");
  FA_SKIP_IF(p->dropout.p > 0, "dropout goes by position");
  FA_SKIP_IF(p->family == FA_KVCACHE, "a cache's keys have positions");
  FA_SKIP_IF(p->seqused_k.n || p->leftpad_k.n, "not all keys are used");
  FA_SKIP_IF(ek[1] || ev[1], "keys share memory");
  FA_SKIP_IF(p->bias.present && fa_problem_is_varlen(p), "entries share keys of the bias");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  const bool varlen = fa_problem_is_varlen(p);
  const int64_t n = varlen ? fa_problem_total_k(p) : p->seqlen_k;
  int64_t *from = malloc((size_t)(n + 1) * sizeof *from);
  if (!from) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_rng r = fa_rng_make(w->c->data_seed, 0x6b657973);
  for (int64_t j = 0; j < n; ++j) from[j] = j;
  for (int64_t b = 0; b < (varlen ? p->batch : 1); ++b) {
    const int64_t first = varlen ? p->cu_seqlens_k.v[b] : 0;
    shuffle(&r, from, first, varlen ? p->cu_seqlens_k.v[b + 1] - first : n);
  }
  rearrange(w, ids, p->bias.present ? 3 : 2, map_keys, from);
  fa_status status = fa_law_run(w, &w->other, err);
  if (status == FA_OK && !w->over) status = fa_law_compare_all(w, &w->other, bound, map_keys, from, err);
  free(from);
  return status;
}

/* ---- heads ---- */

/* Reverses the KV heads; each keeps its group. */
static int64_t other_head(const fa_problem *p, int64_t h, bool query) {
  const int64_t group = query ? p->heads_q / p->heads_kv : 1;
  return (p->heads_kv - 1 - h / group) * group + h % group;
}

static bool map_heads(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  const fa_problem *p = &w->base.p;
  const int rank = w->base.in.t[id].rank;
  const fa_tensor_info *info = fa_tensor_describe(id);
  int axis = rank - 2;
  (void)ctx;
  if (info->axes == FA_AXES_ROWS) axis = rank == 3 ? 1 : 0;
  if (info->axes == FA_AXES_BIAS) axis = p->bias.per_head ? 1 : -1;
  if (id == FA_T_ALIBI_SLOPES || info->axes == FA_AXES_HEADS) axis = rank - 1;
  if (axis >= 0) link->at[axis] = other_head(p, index[axis], !info->on_keys);
  return true;
}

fa_status fa_law_head_permutation(fa_law_work *w, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_Q,  FA_T_K,    FA_T_V,     FA_T_BIAS,  FA_T_ALIBI_SLOPES,
                                     FA_T_DO, FA_T_DLSE, FA_T_K_NEW, FA_T_V_NEW, FA_T_SINKS};
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->heads_kv == 1, "there is one KV head");
  FA_SKIP_IF(p->dropout.p > 0, "dropout goes by head");
  FA_SKIP_IF(p->block_sparse.present && p->block_sparse.list_heads > 1, "block lists go by head");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  rearrange(w, ids, (int)(sizeof ids / sizeof *ids), map_heads, NULL);
  fa_alibi *a = &w->other.p.alibi;
  a->standard = false;
  for (int64_t i = 0; i < a->n; ++i)
    a->slopes[i] = p->alibi.slopes[i / p->heads_q * p->heads_q + other_head(p, i % p->heads_q, true)];
  FA_LAW_TRY(fa_law_run(w, &w->other, err));
  fa_law_modes modes = fa_law_modes_all(FA_LAW_BITS);
  if (!p->bias.per_head)
    fa_law_modes_dbias(&modes, FA_LAW_BOUND); /* a sum over heads, now in another order */
  return fa_law_compare_all(w, &w->other, modes, map_heads, NULL, err);
}

/* ---- pages ---- */

static bool map_pages(const fa_law_work *w, const void *ctx, fa_tensor_id id, const int64_t *index,
                      fa_law_link *link) {
  const int64_t *from = ctx;
  (void)w;
  if (fa_tensor_describe(id)->direction == FA_TENSOR_UPDATED) link->at[0] = from[index[0]];
  return true;
}

fa_status fa_law_page_permutation(fa_law_work *w, fa_error *err) {
  static const fa_tensor_id ids[] = {FA_T_K, FA_T_V};
  const fa_problem *p = &w->c->problem;
  FA_SKIP_IF(p->kvcache.page_size == 0, "the cache has no pages");
  FA_SKIP_IF(w->c->strides[FA_T_K].expand[0] || w->c->strides[FA_T_V].expand[0], "pages share memory");
  FA_LAW_TRY(fa_law_make_base(w, err));
  FA_LAW_TRY(fa_law_run(w, &w->base, err));
  FA_LAW_TRY(fa_law_make_like(w, &w->other, &w->base, err));
  const int64_t n = w->base.in.t[FA_T_K].shape[0];
  int64_t *from = malloc((size_t)(2 * n + 1) * sizeof *from), *to = from + n;
  if (!from) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_rng r = fa_rng_make(w->c->data_seed, 0x7061676573);
  for (int64_t i = 0; i < n; ++i) from[i] = i;
  shuffle(&r, from, 0, n);
  for (int64_t i = 0; i < n; ++i) to[from[i]] = i;
  rearrange(w, ids, 2, map_pages, from);
  int32_t *table = (int32_t *)(void *)w->other.in.t[FA_T_BLOCK_TABLE].data;
  for (int64_t i = 0; i < fa_tensor_count(&w->other.in.t[FA_T_BLOCK_TABLE]); ++i)
    if (table[i] >= 0 && table[i] < n) table[i] = (int32_t)to[table[i]];
  fa_status status = fa_law_run(w, &w->other, err);
  if (status == FA_OK && !w->over)
    status = fa_law_compare_all(w, &w->other, fa_law_modes_all(FA_LAW_BITS), map_pages, from, err);
  for (int i = 0; i < 2 && status == FA_OK && !w->over; ++i)
    status = fa_law_compare(w, &w->other, ids[i], FA_LAW_BITS, map_pages, from, err);
  free(from);
  return status;
}
