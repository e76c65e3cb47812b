/* Calls over a KV cache: new keys are put into it and queries are rotated, then all keys are attended to, in
 * splits that are combined. */
#include "gpu/kernels/params/cache.h"
#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/cache_forward.h"
#include "gpu/plan/hopper_cache.h"
#include "gpu/plan/latent.h"

fa_status fa_cache_supported(const fa_attention *a, const fa_inference *kv, const fa_kernel_device *device,
                             fa_error *err) {
  if (fa_cache_is_gathered(a)) return fa_cache_gathered_supported(a, kv, device, err);
  return fa_cache_kernel_of(a, kv, true, device, err) ? FA_OK : FA_ERR_UNSUPPORTED;
}

/* ---- parameters ---- */

static bool rotates_queries(const fa_attention *a, const fa_inference *kv) {
  return kv->rotary_dim > 0 && a->seqlen_q > 0;
}

/* Packed ones have no batch axis. */
static fa_strides of_queries(const fa_attention *a, fa_strides s) {
  return (fa_strides){a->cu_seqlens_q ? 0 : s.batch, s.row, s.head};
}

/* Of the copy that is rotated. */
static fa_strides queries_stride(const fa_attention *a) {
  return of_queries(a, fa_strides_dense(a->seqlen_q, a->heads_q, a->head_dim));
}

static int64_t queries(const fa_attention *a) {
  return a->cu_seqlens_q ? a->total_q : a->batch * a->seqlen_q;
}

/* Slots and rows of a cache of 8 bits begin on 16 bytes. */
static bool are_bytes_aligned(const void *data, fa_strides s) {
  return (uintptr_t)data % 16 == 0 && s.batch % 16 == 0 && s.row % 16 == 0 && s.head % 16 == 0;
}

/* The four scales of 64 columns are read at once. */
static bool are_scales_aligned(const fa_attention *a, const void *data, fa_strides s) {
  return a->head_dim % 64 == 0 && (uintptr_t)data % 4 == 0 && s.batch % 4 == 0 && s.row % 4 == 0 &&
         s.head % 4 == 0;
}

static bool is_cache_aligned(const fa_attention *a, const fa_inference *kv, const void *data, fa_strides s) {
  if (fa_cache_has_blocks(kv) && !(are_scales_aligned(a, kv->k_scales, kv->k_scales_stride) &&
                                   are_scales_aligned(a, kv->v_scales, kv->v_scales_stride)))
    return false;
  return kv->quantized ? are_bytes_aligned(data, s) : fa_cache_is_aligned(a, data, s);
}

static fa_cache_descales descales_of(const fa_attention *a, const fa_inference *kv) {
  return (fa_cache_descales){
      .k = a->k_descale,
      .v = a->v_descale,
      .stride = {a->descale_batch_stride, kv->descale_slot_stride, a->descale_head_stride},
      .of_slots = kv->descales_of_slots};
}

static void fill_attention(const fa_attention *a, const fa_inference *kv, fa_cache_params *p) {
  fa_cache_params_fill(a, p);
  p->k = (const uint16_t *)kv->k_cache;
  p->k_stride = fa_kernel_strides_of(kv->k_cache_stride, true);
  p->v = kv->v_in_k ? p->k : (const uint16_t *)kv->v_cache;
  p->v_stride = kv->v_in_k ? p->k_stride : fa_kernel_strides_of(kv->v_cache_stride, true);
  p->n_new = (int)kv->n_new;
  p->cache_seqlens = kv->cache_seqlens;
  p->cache_batch_idx = kv->cache_batch_idx;
  p->block_table = kv->block_table;
  p->table_stride = kv->block_table_stride;
  p->page_size = (int)kv->page_size;
  if (kv->block_table) p->page = fa_cache_divisor_of(p->page_size);
  if (kv->topk_indices) { /* else the other fields of lists are nobody's, and unchecked */
    p->topk_indices = kv->topk_indices;
    p->topk_length = kv->topk_length;
    p->topk_batch_stride = a->cu_seqlens_q ? 0 : a->seqlen_q * kv->topk;
    p->topk = (int)kv->topk;
  }
  if (rotates_queries(a, kv)) p->q_stride = fa_kernel_strides_of(queries_stride(a), true);
  if (kv->quantized) p->descale = descales_of(a, kv);
  p->amax = (fa_kernel_amax){a->amax_p, a->amax_o};
  if (fa_cache_has_blocks(kv))
    p->block_scales = (fa_cache_block_scales){.k = kv->k_scales,
                                              .v = kv->v_scales,
                                              .k_stride = fa_kernel_strides_of(kv->k_scales_stride, true),
                                              .v_stride = fa_kernel_strides_of(kv->v_scales_stride, true)};
}

static void fill_part(const fa_attention *a, fa_cache_append_params *p, int part, const void *from,
                      fa_strides from_stride, void *to, fa_strides to_stride, int64_t rows, int64_t heads) {
  p->from[part] = (const uint16_t *)from;
  p->to[part] = (uint16_t *)to;
  p->from_stride[part] = fa_kernel_strides_of(from_stride, true);
  p->to_stride[part] = fa_kernel_strides_of(to_stride, true);
  p->rows[part] = (int)rows;
  p->heads[part] = (int)heads;
  p->aligned[part] = fa_cache_is_aligned(a, from, from_stride) && fa_cache_is_aligned(a, to, to_stride);
}

static void fill_append(const fa_attention *a, const fa_inference *kv, fa_cache_append_params *p) {
  *p = (fa_cache_append_params){0};
  p->head_dim = (int)a->head_dim;
  p->cache_seqlens = kv->cache_seqlens;
  p->cache_batch_idx = kv->cache_batch_idx;
  p->block_table = kv->block_table;
  p->block_table_stride = kv->block_table_stride;
  p->page_size = (int)kv->page_size;
  p->cosines = (const uint16_t *)kv->rotary_cos;
  p->sines = (const uint16_t *)kv->rotary_sin;
  p->cos_stride = p->sin_stride = kv->rotary_dim / 2;
  p->rotary_dim = (int)kv->rotary_dim;
  p->cu_seqlens_q = a->cu_seqlens_q;
  p->rotary_interleaved = kv->rotary_interleaved;
  p->queries_move = a->window_left >= 0 || a->window_right >= 0;
  p->quantises = kv->quantizes_new;
  p->descale = descales_of(a, kv);
  fill_part(a, p, FA_CACHE_Q, a->q, of_queries(a, a->q_stride), NULL, queries_stride(a), a->seqlen_q,
            a->heads_q);
  fill_part(a, p, FA_CACHE_K, kv->k_new, kv->k_new_stride, kv->k_cache, kv->k_cache_stride, kv->n_new,
            a->heads_kv);
  fill_part(a, p, FA_CACHE_V, kv->v_new, kv->v_new_stride, kv->v_cache, kv->v_cache_stride, kv->n_new,
            a->heads_kv);
}

/* ---- launches ---- */

/* Of parts [first, end) of p, which have p->head_dim columns. */
static void add_parts(const fa_attention *a, const fa_inference *kv, fa_cache_append_params *p, int first,
                      int end, fa_plan *out) {
  int64_t most = 0;
  p->first_part = first;
  for (int i = first; i < end; ++i)
    if ((int64_t)p->rows[i] * p->heads[i] > most) most = (int64_t)p->rows[i] * p->heads[i];
  const bool by_elements = kv->quantized || fa_cache_goes_by_elements(a);
  int64_t blocks =
      fa_blocks_of(most * (by_elements ? p->head_dim : p->head_dim / 8), FA_CACHE_APPEND_THREADS);
  if (blocks > FA_CACHE_APPEND_MAX_GRID_X) blocks = FA_CACHE_APPEND_MAX_GRID_X;
  const fa_kernel_entry *k = kv->quantized ? fa_cache_append_eight_find(kv->cache_dtype, a->dtype)
                                           : fa_cache_append_find(a->dtype, by_elements);
  fa_launch *l = fa_plan_add(out, *k, blocks, end - first, a->batch, FA_CACHE_APPEND_THREADS, 0, p);
  l->writes = FA_WRITES(FA_T_K) | FA_WRITES(FA_T_V) | FA_WRITES_WORKSPACE;
}

/* Values of another width than keys have a launch of their own; values in K have none. */
static void add_values(const fa_attention *a, const fa_inference *kv, const fa_cache_append_params *keys,
                       fa_plan *out) {
  fa_cache_append_params *p = fa_plan_params(out, sizeof *p);
  *p = *keys;
  p->head_dim = (int)fa_attention_head_dim_v(a);
  add_parts(a, kv, p, FA_CACHE_V, FA_CACHE_PARTS, out);
}

/* Returns the copy of q that is rotated; NULL where q stays, or the workspace is not there yet. */
static const uint16_t *add_append(const fa_call *call, fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  const bool rotates = rotates_queries(a, kv), grows = kv->n_new > 0;
  const bool alike = !kv->v_in_k && fa_attention_head_dim_v(a) == a->head_dim;
  if ((!rotates && !grows) || a->batch == 0) return NULL;
  fa_cache_append_params *p = fa_plan_params(out, sizeof *p);
  fill_append(a, kv, p);
  if (rotates)
    p->to[FA_CACHE_Q] =
        fa_plan_reserve(out, call, queries(a) * a->heads_q * a->head_dim * fa_attention_element_bytes(a));
  add_parts(a, kv, p, rotates ? FA_CACHE_Q : FA_CACHE_K,
            !grows  ? FA_CACHE_K
            : alike ? FA_CACHE_PARTS
                    : FA_CACHE_V,
            out);
  if (grows && !alike && !kv->v_in_k) add_values(a, kv, p, out);
  return p->to[FA_CACHE_Q];
}

static fa_status plan_gathered(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                               fa_error *err) {
  const fa_attention *a = call->a;
  const void *rotated = add_append(call, out);
  const bool rotates = rotates_queries(a, call->cache);
  return fa_cache_add_gathered(call, rotates ? rotated : a->q, rotates ? queries_stride(a) : a->q_stride,
                               device, out, err);
}

fa_status fa_plan_cache(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  fa_status status = fa_cache_check_problem(a, kv, err);
  if (status == FA_OK) status = fa_cache_check_tensors(a, kv, err);
  if (status != FA_OK) return status;
  if (fa_cache_is_gathered(a)) return plan_gathered(call, device, out, err);
  const bool copied = rotates_queries(a, kv); /* q, to where rows are aligned */
  out->family = FA_PLAN_CACHE;
  out->aligned = (copied || fa_rows_are_aligned(a, a->q, a->q_stride)) &&
                 is_cache_aligned(a, kv, kv->k_cache, kv->k_cache_stride) &&
                 (kv->v_in_k || is_cache_aligned(a, kv, kv->v_cache, kv->v_cache_stride)) &&
                 fa_rows_are_aligned(a, a->o, a->o_stride);
  const fa_cache_kernel *k = fa_cache_kernel_of(a, kv, out->aligned, device, err);
  if (!k) return FA_ERR_UNSUPPORTED;
  k = fa_cache_filling(call, k, out->aligned, device);
  out->is_hopper = fa_latent_is(k);
  out->name = out->is_hopper            ? "hopper_latent"
              : k->ability.large        ? kv->mixed_rows ? "cache_mixed" : "cache_large"
              : fa_cache_has_blocks(kv) ? "cache_four"
              : k->ability.cache_dtype  ? "cache_eight"
                                        : "cache_forward";
  fa_plan_blocks(out, k->block_m, k->block_n);
  fa_plan_add_amax_clear(a, out);
  const uint16_t *rotated = add_append(call, out);
  if (fa_attention_is_empty(a)) return FA_OK;
  const fa_hopper_cache_queries q = copied ? (fa_hopper_cache_queries){rotated, queries_stride(a)}
                                           : (fa_hopper_cache_queries){a->q, a->q_stride};
  if (!out->is_hopper && fa_hopper_add_cache(call, k, q, device, out)) return FA_OK;
  void *const params = fa_plan_params(out, k->params_bytes);
  fa_cache_params *p = out->is_hopper ? fa_latent_fill(a, kv, params) : params;
  fill_attention(a, kv, p);
  if (rotated) p->q = rotated;
  p->aligned = out->aligned;
  p->n_splits = fa_cache_splits_of(call, k);
  return fa_cache_add_forward(call, k, params, p, device, out, err);
}
