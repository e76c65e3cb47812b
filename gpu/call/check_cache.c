/* The arguments of a call over a cache. */
#include "gpu/call/check_cache.h"

#include "gpu/call/check.h"
#include "gpu/kernels/params/cache.h"

#include <stdlib.h>

/* As in gpu/call/check.c: the slots of a sequence, and their sums, are ints in the kernels. */
#define MAX_LENGTH (((int64_t)1 << 29) - 1)
#define MAX_ROWS (((int64_t)1 << 31) - 1)

/* ---- the problem ---- */

static fa_status check_features(const fa_attention *a, fa_error *err) {
  const fa_status status = fa_eight_refuse(a, "not over a cache", err);
  if (status != FA_OK) return status;
  if (a->p_debug) return fa_fail(err, FA_ERR_UNSUPPORTED, "p_debug: not together with a cache");
  if (a->cu_seqlens_k)
    return fa_fail(err, FA_ERR_INPUT, "cu_seqlens_k: over a cache only queries are packed, by cu_seqlens_q");
  if (a->seqused_k)
    return fa_fail(err, FA_ERR_INPUT, "seqused_k: of a cache, cache_seqlens says how many keys there are");
  return FA_OK;
}

static fa_status check_sizes(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  const struct {
    const char *name;
    int64_t x, lo, hi;
  } sizes[] = {{"cache_rows", kv->cache_rows, 0, MAX_ROWS},
               {"n_new", kv->n_new, 0, MAX_LENGTH},
               {"page_size", kv->page_size, kv->block_table ? 1 : 0, MAX_LENGTH},
               {"max_pages", kv->max_pages, 0, MAX_LENGTH},
               {"rotary_rows", kv->rotary_rows, 0, MAX_LENGTH},
               {"splits", kv->splits, 0, FA_MAX_SPLITS_OF_KEYS}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const fa_status status = fa_range_check(sizes[i].name, sizes[i].x, sizes[i].lo, sizes[i].hi, err);
    if (status != FA_OK) return status;
  }
  if (kv->n_new > a->seqlen_k)
    return fa_fail(err, FA_ERR_INPUT, "n_new = %lld keys are more than an entry may have, seqlen_k = %lld",
                   (long long)kv->n_new, (long long)a->seqlen_k);
  if (kv->v_in_k && fa_attention_head_dim_v(a) > a->head_dim)
    return fa_fail(err, FA_ERR_INPUT,
                   "v_in_k: head_dim_v = %lld columns are more than K has, head_dim = %lld",
                   (long long)fa_attention_head_dim_v(a), (long long)a->head_dim);
  return FA_OK;
}

/* Lists stand in the place of what else says which keys a row sees. */
static fa_status check_topk(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  const struct {
    bool wanted;
    const char *what;
  } all[] = {
      {a->window_left >= 0 || a->window_right >= 0, "a window"},
      {a->mask_bits != NULL, "mask_bits"},
      {a->leftpad_k != NULL, "leftpad_k"},
      {kv->cache_batch_idx != NULL, "cache_batch_idx"},
      {a->alibi_slopes != NULL, "alibi_slopes"},
      {a->bias != NULL, "a bias"},
      {a->dropout_p > 0, "dropout"},
      {a->flex != NULL, "flex"},
      {a->dtype == FA_F32, "dtype f32"},
      {a->head_dim > FA_CACHE_MAX_HEAD_DIM, "a head_dim above 576"},
      {fa_attention_head_dim_v(a) > FA_CACHE_MAX_HEAD_DIM_V, "a head_dim_v above 512"},
      {a->head_dim % 8 != 0 || fa_attention_head_dim_v(a) % 8 != 0, "a head_dim that is no multiple of 8"},
      {kv->rotary_dim > 0, "rotary_dim"}};
  if (!kv->topk_indices) return FA_OK;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i].wanted)
      return fa_fail(err, FA_ERR_UNSUPPORTED, "topk_indices: not together with %s", all[i].what);
  return fa_range_check("topk", kv->topk, 1, MAX_LENGTH, err);
}

static fa_status check_pages(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  if (!kv->block_table) {
    if (kv->page_size)
      return fa_fail(err, FA_ERR_INPUT, "page_size = %lld, but block_table is NULL",
                     (long long)kv->page_size);
    if (!kv->cache_batch_idx && kv->cache_rows < a->batch)
      return fa_fail(err, FA_ERR_INPUT,
                     "cache_rows = %lld: without cache_batch_idx every entry, of %lld, has its own",
                     (long long)kv->cache_rows, (long long)a->batch);
    return FA_OK;
  }
  if (kv->cache_batch_idx)
    return fa_fail(err, FA_ERR_INPUT, "cache_batch_idx: not together with block_table, which says the same");
  if (kv->max_pages * kv->page_size < a->seqlen_k)
    return fa_fail(err, FA_ERR_INPUT, "seqlen_k = %lld: max_pages = %lld of page_size = %lld hold fewer",
                   (long long)a->seqlen_k, (long long)kv->max_pages, (long long)kv->page_size);
  if (kv->block_table_stride < 0)
    return fa_fail(err, FA_ERR_INPUT, "block_table_stride = %lld: negative strides are not supported",
                   (long long)kv->block_table_stride);
  return FA_OK;
}

static fa_status check_rotary(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  if (kv->rotary_dim < 0 || kv->rotary_dim > a->head_dim || kv->rotary_dim % 2 != 0)
    return fa_fail(err, FA_ERR_INPUT, "rotary_dim = %lld: an even number, 0 (none) .. head_dim = %lld",
                   (long long)kv->rotary_dim, (long long)a->head_dim);
  if (kv->rotary_dim == 0) return FA_OK;
  if (!kv->rotary_cos || !kv->rotary_sin)
    return fa_fail(err, FA_ERR_INPUT, "%s is NULL, but rotary_dim = %lld",
                   kv->rotary_cos ? "rotary_sin" : "rotary_cos", (long long)kv->rotary_dim);
  return FA_OK;
}

fa_status fa_cache_check_problem(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  if (!a) return fa_fail(err, FA_ERR_INPUT, "the fa_attention is NULL");
  if (!kv) return fa_fail(err, FA_ERR_INPUT, "the fa_inference is NULL");
  fa_status status = check_features(a, err);
  if (status == FA_OK) status = fa_attention_check_numbers(a, err);
  if (status == FA_OK) status = check_sizes(a, kv, err);
  if (status == FA_OK && !kv->cache_seqlens && a->batch > 0)
    status = fa_fail(err, FA_ERR_INPUT, "cache_seqlens is NULL");
  if (status == FA_OK) status = check_pages(a, kv, err);
  if (status == FA_OK) status = check_topk(a, kv, err);
  if (status == FA_OK) status = fa_cache_check_quantized(a, kv, err);
  return status == FA_OK ? check_rotary(a, kv, err) : status;
}

/* ---- tensors ---- */

static fa_status check_arrays(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  const int bytes = fa_attention_element_bytes(a);
  const struct {
    const char *name;
    const void *p;
    int bytes;
  } all[] = {{"cache_seqlens", kv->cache_seqlens, 4}, {"cache_batch_idx", kv->cache_batch_idx, 4},
             {"block_table", kv->block_table, 4},     {"topk_indices", kv->topk_indices, 4},
             {"topk_length", kv->topk_length, 4},     {"rotary_cos", kv->rotary_cos, bytes},
             {"rotary_sin", kv->rotary_sin, bytes}};
  fa_status status = fa_attention_check_arrays(a, err);
  for (size_t i = 0; status == FA_OK && i < sizeof all / sizeof *all; ++i)
    status = fa_alignment_check(all[i].name, all[i].p, all[i].bytes, err);
  return status;
}

fa_status fa_cache_check_tensors(const fa_attention *a, const fa_inference *kv, fa_error *err) {
  fa_status status = check_arrays(a, kv, err);
  const int bytes = fa_attention_element_bytes(a), cached = fa_cache_element_bytes(a, kv),
            fresh = fa_cache_new_bytes(a, kv);
  const int64_t slots = kv->block_table ? kv->page_size : a->seqlen_k, dim = a->head_dim,
                cached_dim = fa_cache_columns(a, kv), dim_v = fa_attention_head_dim_v(a);
  const bool put = kv->n_new > 0, blocks = fa_cache_has_blocks(kv);
  const int64_t batch = a->cu_seqlens_q ? 0 : a->batch, rows = a->cu_seqlens_q ? a->total_q : a->seqlen_q;
  if (status != FA_OK || a->batch == 0) return status;
  const struct {
    bool skipped; /* without rows of the cache, batch 0 in an extent would mean no batch axis */
    fa_extent x;
  } all[] = {
      {kv->cache_rows == 0,
       {"k_cache", kv->k_cache, kv->k_cache_stride, kv->cache_rows, slots, a->heads_kv, cached_dim, cached,
        put}},
      {kv->cache_rows == 0 || kv->v_in_k,
       {"v_cache", kv->v_cache, kv->v_cache_stride, kv->cache_rows, slots, a->heads_kv,
        blocks ? cached_dim : dim_v, cached, put}},
      {kv->cache_rows == 0 || !blocks,
       {"k_scales", kv->k_scales, kv->k_scales_stride, kv->cache_rows, slots, a->heads_kv,
        dim / FA_CACHE_SCALED, 1, false}},
      {kv->cache_rows == 0 || !blocks,
       {"v_scales", kv->v_scales, kv->v_scales_stride, kv->cache_rows, slots, a->heads_kv,
        dim / FA_CACHE_SCALED, 1, false}},
      {false, {"k_new", kv->k_new, kv->k_new_stride, a->batch, kv->n_new, a->heads_kv, dim, fresh, false}},
      {kv->v_in_k,
       {"v_new", kv->v_new, kv->v_new_stride, a->batch, kv->n_new, a->heads_kv, dim_v, fresh, false}},
      {false, {"q", a->q, a->q_stride, batch, rows, a->heads_q, dim, bytes, false}},
      {false, {"o", a->o, a->o_stride, batch, rows, a->heads_q, dim_v, bytes, true}},
      {false, fa_lse_extent(a, "lse", a->lse, a->lse_stride, true)},
  };
  for (size_t i = 0; status == FA_OK && i < sizeof all / sizeof *all; ++i)
    if (!all[i].skipped) status = fa_extent_check(&all[i].x, err);
  return status;
}

/* ---- contents ---- */

static fa_status check_sequence(const fa_attention *a, const fa_inference *kv, const fa_cache_contents *c,
                                int64_t b, fa_error *err) {
  const int64_t most = a->seqlen_k - kv->n_new, len = c->cache_seqlens[b], n = len + kv->n_new;
  const int64_t rows = c->cu_seqlens_q ? c->cu_seqlens_q[b + 1] - c->cu_seqlens_q[b] : a->seqlen_q;
  const int64_t moving = kv->n_new > rows ? kv->n_new : rows;
  if (len < 0 || len > most)
    return fa_fail(err, FA_ERR_INPUT, "cache_seqlens[%lld] = %lld: 0 .. %lld, seqlen_k less the new keys",
                   (long long)b, (long long)len, (long long)most);
  if (c->leftpad_k && (c->leftpad_k[b] < 0 || c->leftpad_k[b] > n))
    return fa_fail(err, FA_ERR_INPUT, "leftpad_k[%lld] = %d: 0 .. %lld, the keys of the entry", (long long)b,
                   c->leftpad_k[b], (long long)n);
  if (kv->rotary_dim > 0 && moving > 0 && len + moving > kv->rotary_rows)
    return fa_fail(err, FA_ERR_INPUT, "rotary_rows = %lld: entry %lld has positions up to %lld",
                   (long long)kv->rotary_rows, (long long)b, (long long)(len + moving - 1));
  if (c->cache_batch_idx && (c->cache_batch_idx[b] < 0 || c->cache_batch_idx[b] >= kv->cache_rows))
    return fa_fail(err, FA_ERR_INPUT, "cache_batch_idx[%lld] = %d: 0 .. %lld, the rows of the cache",
                   (long long)b, c->cache_batch_idx[b], (long long)kv->cache_rows - 1);
  for (int64_t n_page = 0; c->block_table && n_page * kv->page_size < n; ++n_page) {
    const int32_t page = c->block_table[b * kv->max_pages + n_page];
    if (page < 0 || page >= kv->cache_rows)
      return fa_fail(err, FA_ERR_INPUT, "block_table[%lld][%lld] = %d: 0 .. %lld, the pages of the cache",
                     (long long)b, (long long)n_page, page, (long long)kv->cache_rows - 1);
  }
  return FA_OK;
}

/* Without pages an entry that is no key's number names none. */
static fa_status check_list(const fa_inference *kv, const int32_t *list, int64_t n, int64_t row,
                            fa_error *err) {
  for (int64_t i = 0; kv->block_table && i < n; ++i)
    if (list[i] >= 0 && list[i] / kv->page_size >= kv->cache_rows)
      return fa_fail(
          err, FA_ERR_INPUT, "topk_indices[%lld][%lld] = %d: below 0, or a slot of %lld pages of %lld",
          (long long)row, (long long)i, list[i], (long long)kv->cache_rows, (long long)kv->page_size);
  return FA_OK;
}

/* Of a sequence's rows. */
static fa_status check_lists(const fa_attention *a, const fa_inference *kv, const fa_cache_contents *c,
                             int64_t b, fa_error *err) {
  const int64_t row0 = c->cu_seqlens_q ? c->cu_seqlens_q[b] : b * a->seqlen_q;
  const int64_t rows = c->cu_seqlens_q ? c->cu_seqlens_q[b + 1] - row0 : a->seqlen_q;
  const int64_t n = c->topk_length ? c->topk_length[b] : kv->topk;
  if (n < 0 || n > kv->topk)
    return fa_fail(err, FA_ERR_INPUT, "topk_length[%lld] = %lld: 0 .. %lld, the entries of a list",
                   (long long)b, (long long)n, (long long)kv->topk);
  fa_status status = FA_OK;
  for (int64_t row = row0; status == FA_OK && row < row0 + rows; ++row)
    status = check_list(kv, c->topk_indices + row * kv->topk, n, row, err);
  return status;
}

/* Rows or pages that new keys are written to: two sequences that write to one would race. */
static fa_status check_owners(const fa_attention *a, const fa_inference *kv, const fa_cache_contents *c,
                              int32_t *owner, fa_error *err) {
  const int64_t size = c->block_table ? kv->page_size : a->seqlen_k;
  for (int64_t b = 0; b < a->batch; ++b) {
    const int64_t len = c->cache_seqlens[b];
    for (int64_t n = len / size; n * size < len + kv->n_new; ++n) {
      const int32_t at = c->block_table ? c->block_table[b * kv->max_pages + n] : c->cache_batch_idx[b];
      if (owner[at])
        return fa_fail(err, FA_ERR_INPUT, "%s %d gets new keys of entries %d and %lld",
                       c->block_table ? "page" : "cache row", at, owner[at] - 1, (long long)b);
      owner[at] = (int32_t)b + 1;
    }
  }
  return FA_OK;
}

fa_status fa_cache_check_contents(const fa_attention *a, const fa_inference *kv, const fa_cache_contents *c,
                                  fa_error *err) {
  fa_status status = FA_OK;
  if (c->cu_seqlens_q)
    status = fa_cu_seqlens_check("cu_seqlens_q", c->cu_seqlens_q, a->batch, a->seqlen_q, a->total_q, err);
  for (int64_t b = 0; status == FA_OK && b < a->batch; ++b) status = check_sequence(a, kv, c, b, err);
  for (int64_t b = 0; status == FA_OK && c->topk_indices && b < a->batch; ++b)
    status = check_lists(a, kv, c, b, err);
  if (status != FA_OK || kv->n_new == 0 || (!c->block_table && !c->cache_batch_idx)) return status;
  int32_t *owner = calloc((size_t)kv->cache_rows + 1, sizeof *owner); /* per row or page: batch index + 1 */
  if (!owner) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  status = check_owners(a, kv, c, owner, err);
  free(owner);
  return status;
}
