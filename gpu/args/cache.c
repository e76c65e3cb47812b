/* The kvcache family's problem and tensors to the arguments of fa_forward_kvcache. */
#include "gpu/args/problem.h"

#include "cases/tensors/nibbles.h"
#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"

void fa_args_cache(const fa_problem *p, fa_attention *a, fa_inference *kv) {
  static const int32_t present[1];
  static const uint16_t table[1];
  static const float descale[1];
  const fa_kvcache *c = &p->kvcache;
  fa_args_common(p, a);
  fa_inference_init(kv);
  if (fa_problem_is_varlen(p)) {
    a->cu_seqlens_q = present;
    a->total_q = fa_problem_total_q(p);
  }
  /* A window is one even where it hides nothing: queries move with it. */
  if (fa_mask_has_edges(&p->mask) && p->mask.left < 0 && p->mask.right < 0)
    a->window_left = p->seqlen_q + p->seqlen_k;
  kv->cache_rows = fa_problem_cache_rows(p);
  kv->cache_seqlens = present;
  if (c->batch_idx.n) kv->cache_batch_idx = present;
  if (c->page_size > 0) {
    kv->block_table = present;
    kv->page_size = c->page_size;
    kv->max_pages = kv->block_table_stride = p->seqlen_k / c->page_size;
  }
  kv->n_new = c->n_new;
  kv->rotary_dim = c->rotary_dim;
  kv->rotary_interleaved = c->rotary_interleaved;
  if (c->rotary_dim > 0) kv->rotary_cos = kv->rotary_sin = table;
  kv->splits = p->splits;
  kv->quantized = p->quantized.present;
  if (kv->quantized) kv->cache_dtype = p->quantized.dtype;
  kv->quantizes_new = p->quantized.quantizes_new;
  kv->mixed_rows = kv->quantized && p->quantized.per == FA_PER_TILE;
  kv->descales_of_slots = kv->quantized && p->quantized.per > FA_PER_HEAD && !kv->mixed_rows;
  if (kv->descales_of_slots) a->k_descale = a->v_descale = descale;
  kv->v_in_k = c->v_in_k;
  if (p->topk.present) {
    kv->topk_indices = present;
    kv->topk = p->topk.k;
    if (p->topk.len.n) kv->topk_length = present;
  }
}

/* ---- tensors ---- */

static fa_strides strides_of(const fa_tensor *t) {
  return (fa_strides){t->stride[0], t->stride[1], t->stride[2]};
}

/* [any, slots, heads_kv, columns] of a type. */
static const char *check_keys(const fa_problem *p, const fa_tensor *x, fa_dtype dtype, int64_t slots,
                              int64_t columns) {
  if (!x->data) return "a cache, new k or new v is missing";
  if (x->dtype != dtype || x->rank != 4)
    return "a cache, new k or new v has another dtype or rank than the problem says";
  if (x->shape[1] != slots || x->shape[2] != p->heads_kv || x->shape[3] != columns)
    return "a cache, new k or new v has another shape than the problem says";
  return x->stride[3] != 1 ? "head_dim is not contiguous in a cache, new k or new v" : NULL;
}

static const char *check_ints(const fa_tensor *x, int rank) {
  if (x->data && x->dtype == FA_I32 && x->rank == rank && x->stride[rank - 1] == 1) return NULL;
  return "cache_seqlens, cache_batch_idx or block_table is missing, not int32, or of another rank";
}

static const char *take_new(const fa_problem *p, const fa_tensor *x, fa_inference *kv) {
  const fa_dtype dtype = kv->quantized && !kv->quantizes_new ? kv->cache_dtype : p->dtype;
  const char *why = check_keys(p, &x[FA_T_K_NEW], dtype, kv->n_new, p->head_dim);
  if (!why && !kv->v_in_k) why = check_keys(p, &x[FA_T_V_NEW], dtype, kv->n_new, p->head_dim_v);
  if (why) return why;
  kv->k_new = x[FA_T_K_NEW].data;
  kv->k_new_stride = strides_of(&x[FA_T_K_NEW]);
  if (kv->v_in_k) return NULL;
  kv->v_new = x[FA_T_V_NEW].data;
  kv->v_new_stride = strides_of(&x[FA_T_V_NEW]);
  return NULL;
}

static const char *take_rotary(const fa_problem *p, const fa_tensor *x, fa_inference *kv) {
  for (int i = FA_T_ROTARY_COS; i <= FA_T_ROTARY_SIN; ++i)
    if (!x[i].data || x[i].dtype != p->dtype || x[i].rank != 2 || x[i].shape[1] != kv->rotary_dim / 2 ||
        x[i].stride[0] != x[i].shape[1] || x[i].shape[0] != x[FA_T_ROTARY_COS].shape[0])
      return "a rotary table is missing, or has another dtype or shape than the problem says";
  kv->rotary_cos = x[FA_T_ROTARY_COS].data;
  kv->rotary_sin = x[FA_T_ROTARY_SIN].data;
  kv->rotary_rows = x[FA_T_ROTARY_COS].shape[0];
  return NULL;
}

/* [1], [B, Hk], [rows, slots, Hk] or [pages, Hk]. */
static const char *take_descales(const fa_problem *p, const fa_tensor *x, fa_attention *a, fa_inference *kv) {
  const fa_tensor *k = &x[FA_T_K_DESCALE], *v = &x[FA_T_V_DESCALE];
  static const int ranks[FA_N_DESCALES] = {1, 2, 3, 2, 0};
  const int rank = ranks[p->quantized.per];
  if (!k->data || !v->data) return "descales of k or v are missing";
  if (k->dtype != FA_F32 || v->dtype != FA_F32 || k->rank != rank || v->rank != rank)
    return "descales of k or v are not f32, or of another rank";
  for (int i = 0; i < rank; ++i)
    if (k->stride[i] != v->stride[i]) return "descales of k and v differ in strides";
  a->k_descale = (const float *)(const void *)k->data;
  a->v_descale = (const float *)(const void *)v->data;
  a->descale_batch_stride = rank > 1 ? k->stride[0] : 0;
  a->descale_head_stride = rank > 1 ? k->stride[rank - 1] : 0;
  kv->descale_slot_stride = rank == 3 ? k->stride[1] : 0;
  return NULL;
}

/* Of blocks of 16 columns. */
static const char *take_scales(const fa_problem *p, const fa_tensor *x, int64_t slots, fa_inference *kv) {
  const fa_tensor *k = &x[FA_T_K_SCALES], *v = &x[FA_T_V_SCALES];
  const char *why = check_keys(p, k, FA_E4M3, slots, p->head_dim / FA_SCALED_BLOCK);
  if (!why) why = check_keys(p, v, FA_E4M3, slots, p->head_dim_v / FA_SCALED_BLOCK);
  if (why) return why;
  kv->k_scales = (const uint8_t *)k->data;
  kv->v_scales = (const uint8_t *)v->data;
  kv->k_scales_stride = strides_of(k);
  kv->v_scales_stride = strides_of(v);
  return NULL;
}

/* Where an entry's keys are. */
static const char *take_places(const fa_tensor *x, fa_inference *kv) {
  const char *why = check_ints(&x[FA_T_CACHE_SEQLENS], 1);
  if (!why && kv->cache_batch_idx) why = check_ints(&x[FA_T_CACHE_BATCH_IDX], 1);
  if (!why && kv->block_table) why = check_ints(&x[FA_T_BLOCK_TABLE], 2);
  if (why) return why;
  kv->cache_seqlens = (const int32_t *)(const void *)x[FA_T_CACHE_SEQLENS].data;
  kv->cache_batch_idx = (const int32_t *)(const void *)x[FA_T_CACHE_BATCH_IDX].data;
  kv->block_table = (const int32_t *)(const void *)x[FA_T_BLOCK_TABLE].data;
  if (kv->block_table) kv->block_table_stride = x[FA_T_BLOCK_TABLE].stride[0];
  return NULL;
}

/* Lists of keys are dense. */
static const char *take_lists(const fa_problem *p, const fa_tensor *x, const fa_attention *a,
                              fa_inference *kv) {
  const fa_tensor *lists = &x[FA_T_TOPK_INDICES], *length = &x[FA_T_TOPK_LENGTH];
  const int rank = fa_problem_is_varlen(p) ? 2 : 3;
  const bool none = fa_attention_is_empty(a); /* no memory either */
  if (!none &&
      (check_ints(lists, rank) || lists->shape[rank - 1] != kv->topk || lists->stride[rank - 2] != kv->topk ||
       (rank == 3 && lists->stride[0] != lists->shape[1] * kv->topk)))
    return "topk_indices is missing, not int32, or of another shape";
  if (kv->topk_length && a->batch > 0 && check_ints(length, 1))
    return "topk_length is missing, not int32, or of another rank";
  if (!none) kv->topk_indices = (const int32_t *)(const void *)lists->data;
  kv->topk_length = (const int32_t *)(const void *)length->data;
  return NULL;
}

const char *fa_args_cache_tensors(const fa_problem *p, const fa_tensors *t, fa_attention *a,
                                  fa_inference *kv) {
  const fa_tensor *x = t->t;
  fa_args_cache(p, a, kv);
  const int64_t slots = kv->block_table ? kv->page_size : p->seqlen_k;
  const char *why = fa_args_outer_tensors(p, t, a);
  if (!why && a->cu_seqlens_q && !x[FA_T_CU_SEQLENS_Q].data) why = "cu_seqlens_q is missing";
  const bool blocks = fa_cache_has_blocks(kv);
  const fa_dtype dtype = kv->mixed_rows || blocks ? FA_U8 : kv->quantized ? kv->cache_dtype : p->dtype;
  if (!why) why = check_keys(p, &x[FA_T_K], dtype, slots, fa_cache_columns(a, kv));
  if (!why && !kv->v_in_k) why = check_keys(p, &x[FA_T_V], dtype, slots, p->head_dim_v / (blocks ? 2 : 1));
  if (!why && !kv->v_in_k && x[FA_T_K].shape[0] != x[FA_T_V].shape[0])
    why = "the caches of k and v differ in rows or pages";
  if (!why) why = take_places(x, kv);
  if (!why && kv->n_new > 0) why = take_new(p, x, kv);
  if (!why && kv->rotary_dim > 0) why = take_rotary(p, x, kv);
  if (!why && kv->topk_indices) why = take_lists(p, x, a, kv);
  if (!why && kv->quantized && !kv->mixed_rows) why = take_descales(p, x, a, kv);
  if (!why && blocks) why = take_scales(p, x, slots, kv);
  if (why) return why;
  a->cu_seqlens_q = (const int32_t *)x[FA_T_CU_SEQLENS_Q].data;
  kv->k_cache = x[FA_T_K].data;
  kv->k_cache_stride = strides_of(&x[FA_T_K]);
  if (!kv->v_in_k) {
    kv->v_cache = x[FA_T_V].data;
    kv->v_cache_stride = strides_of(&x[FA_T_V]);
  }
  kv->cache_rows = x[FA_T_K].shape[0];
  return NULL;
}
