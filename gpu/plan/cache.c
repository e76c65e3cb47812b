/* Calls over a KV cache: new keys are put into it and queries are rotated, then all keys are attended to, in
 * splits that are combined. */
#include "gpu/kernels/params/cache.h"
#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/parts.h"
#include "gpu/plan/splits.h"

#include <limits.h>

#define MAX_GRID_X (((int64_t)1 << 31) - 1)

/* The rows of a group's heads, which share their keys. */
static int64_t packed_rows(const fa_attention *a) {
  return a->seqlen_q * (a->heads_q / a->heads_kv);
}

static const fa_cache_kernel *find_kernel(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                          fa_error *err) {
  const int64_t rows = packed_rows(a);
  const fa_cache_ability wanted = {.bf16 = a->dtype == FA_BF16,
                                   .head_dim = (int)a->head_dim,
                                   .packed_rows = rows < INT_MAX ? (int)rows : INT_MAX,
                                   .unaligned = !aligned,
                                   .alibi = a->alibi_slopes != NULL,
                                   .softcap = a->softcap > 0,
                                   .mask_bits = a->mask_bits != NULL};
  const fa_cache_kernel *k = fa_cache_forward_find(wanted, device);
  if (k) return k;
  if (device && fa_cache_forward_find(wanted, NULL))
    fa_fail(
        err, FA_ERR_UNSUPPORTED,
        "head_dim = %lld: every kernel over a cache needs more than the device's %zu bytes of shared memory",
        (long long)a->head_dim, device->max_shared_bytes);
  else
    fa_fail(err, FA_ERR_UNSUPPORTED, "head_dim = %lld: no kernel over a cache was built for it",
            (long long)a->head_dim);
  return NULL;
}

fa_status fa_cache_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  return find_kernel(a, true, device, err) ? FA_OK : FA_ERR_UNSUPPORTED;
}

/* Layer after layer asks the same, and the answer costs more than all else on the host. */
static int choose_splits(const fa_cache_work *load) {
  static _Thread_local fa_cache_work last;
  static _Thread_local int answer;
  const bool same = answer && last.tiles == load->tiles && last.key_blocks == load->key_blocks &&
                    last.block_bytes == load->block_bytes && last.n_processors == load->n_processors &&
                    last.blocks_per_processor == load->blocks_per_processor;
  if (same) return answer;
  last = *load;
  answer = fa_cache_splits_choose(load);
  return answer;
}

static int splits_of(const fa_call *call, const fa_cache_kernel *k) {
  const fa_attention *a = call->a;
  const fa_cache_work load = {.tiles = fa_blocks_of(packed_rows(a), k->block_m) * a->heads_kv * a->batch,
                              .key_blocks = fa_blocks_of(a->seqlen_k, k->block_n),
                              .block_bytes = (int64_t)k->block_n * a->head_dim * 2 * 2,
                              .n_processors = call->n_processors,
                              .blocks_per_processor = k->blocks_per_processor};
  return call->cache->splits ? (int)call->cache->splits : choose_splits(&load);
}

/* ---- parameters ---- */

static bool rotates_queries(const fa_attention *a, const fa_inference *kv) {
  return kv->rotary_dim > 0 && a->seqlen_q > 0;
}

static fa_strides queries_stride(const fa_attention *a) {
  return fa_strides_dense(a->seqlen_q, a->heads_q, a->head_dim);
}

static void fill_attention(const fa_attention *a, const fa_inference *kv, fa_cache_params *p) {
  fa_attention_params f;
  fa_attention_params_fill(a, &f);
  *p = (fa_cache_params){.q = f.q,
                         .k = (const uint16_t *)kv->k_cache,
                         .v = (const uint16_t *)kv->v_cache,
                         .o = f.o,
                         .lse = f.lse,
                         .q_stride = f.q_stride,
                         .k_stride = fa_kernel_strides_of(kv->k_cache_stride, true),
                         .v_stride = fa_kernel_strides_of(kv->v_cache_stride, true),
                         .o_stride = f.o_stride,
                         .lse_stride = f.lse_stride,
                         .batch = (int)a->batch,
                         .seqlen_q = f.seqlen_q,
                         .heads_q = f.heads_q,
                         .heads_kv = (int)a->heads_kv,
                         .heads_per_kv = f.heads_per_kv,
                         .head_dim = f.head_dim,
                         .seqlen_k = f.seqlen_k,
                         .n_new = (int)kv->n_new,
                         .cache_seqlens = kv->cache_seqlens,
                         .cache_batch_idx = kv->cache_batch_idx,
                         .leftpad_k = a->leftpad_k,
                         .block_table = kv->block_table,
                         .table_stride = kv->block_table_stride,
                         .page_size = (int)kv->page_size,
                         .window_left = f.window_left,
                         .window_right = f.window_right,
                         .chunk = f.chunk,
                         .mask_bits = f.mask_bits,
                         .mask_indptr = f.mask_indptr,
                         .scale = f.scale,
                         .scale_log2 = f.scale_log2,
                         .score_sign = f.score_sign,
                         .softcap = f.softcap,
                         .alibi_slopes = f.alibi_slopes,
                         .alibi_batch_stride = f.alibi_batch_stride,
                         .empty_lse = f.empty_lse,
                         .n_splits = 1};
  if (kv->block_table) p->page = fa_cache_divisor_of(p->page_size);
  if (rotates_queries(a, kv)) p->q_stride = fa_kernel_strides_of(queries_stride(a), true);
}

static void fill_part(const fa_attention *a, fa_cache_append_params *p, int part, const void *from,
                      fa_strides from_stride, void *to, fa_strides to_stride, int64_t rows, int64_t heads) {
  p->from[part] = (const uint16_t *)from;
  p->to[part] = (uint16_t *)to;
  p->from_stride[part] = fa_kernel_strides_of(from_stride, true);
  p->to_stride[part] = fa_kernel_strides_of(to_stride, true);
  p->rows[part] = (int)rows;
  p->heads[part] = (int)heads;
  p->aligned[part] = fa_rows_are_aligned(a, from, from_stride) && fa_rows_are_aligned(a, to, to_stride);
}

static void fill_append(const fa_attention *a, const fa_inference *kv, fa_cache_append_params *p) {
  *p = (fa_cache_append_params){0};
  p->first_part = rotates_queries(a, kv) ? FA_CACHE_Q : FA_CACHE_K;
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
  p->rotary_interleaved = kv->rotary_interleaved;
  p->queries_move = a->window_left >= 0 || a->window_right >= 0;
  fill_part(a, p, FA_CACHE_Q, a->q, a->q_stride, NULL, queries_stride(a), a->seqlen_q, a->heads_q);
  fill_part(a, p, FA_CACHE_K, kv->k_new, kv->k_new_stride, kv->k_cache, kv->k_cache_stride, kv->n_new,
            a->heads_kv);
  fill_part(a, p, FA_CACHE_V, kv->v_new, kv->v_new_stride, kv->v_cache, kv->v_cache_stride, kv->n_new,
            a->heads_kv);
}

/* ---- launches ---- */

/* Returns the copy of q that is rotated; NULL where q stays, or the workspace is not there yet. */
static const uint16_t *add_append(const fa_call *call, fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  const bool rotates = rotates_queries(a, kv);
  const int parts = (rotates ? 1 : 0) + (kv->n_new > 0 ? 2 : 0);
  int64_t most = 0;
  if (parts == 0 || a->batch == 0) return NULL;
  fa_cache_append_params *p = fa_plan_params(out, sizeof *p);
  fill_append(a, kv, p);
  if (rotates)
    p->to[FA_CACHE_Q] = fa_plan_reserve(out, call, a->batch * a->heads_q * a->seqlen_q * a->head_dim * 2);
  for (int i = p->first_part; i < p->first_part + parts; ++i)
    if ((int64_t)p->rows[i] * p->heads[i] > most) most = (int64_t)p->rows[i] * p->heads[i];
  int64_t blocks = fa_blocks_of(most * (p->head_dim / 8), FA_CACHE_APPEND_THREADS);
  if (blocks > FA_CACHE_APPEND_MAX_GRID_X) blocks = FA_CACHE_APPEND_MAX_GRID_X;
  fa_launch *l = fa_plan_add(out, *fa_cache_append_find(a->dtype == FA_BF16), blocks, parts, a->batch,
                             FA_CACHE_APPEND_THREADS, 0, p);
  l->writes = FA_WRITES(FA_T_K) | FA_WRITES(FA_T_V) | FA_WRITES_WORKSPACE;
  return p->to[FA_CACHE_Q];
}

/* Waits itself for the launch before it. */
static void add_combine(const fa_attention *a, fa_cache_params *p, fa_plan *out) {
  const fa_cache_kernel *k = fa_cache_combine_find(a->dtype == FA_BF16);
  const int64_t rows = a->batch * a->heads_q * a->seqlen_q;
  fa_launch *l = fa_plan_add(out, FA_ENTRY_OF(k), fa_blocks_of(rows, k->block_m), 1, 1, k->n_threads,
                             k->shared_bytes, p);
  l->overlaps = true;
  l->writes = FA_WRITES_FORWARD | FA_WRITES_WORKSPACE;
}

static fa_status add_attention(const fa_call *call, const fa_cache_kernel *k, fa_cache_params *p,
                               fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  const int64_t blocks = fa_blocks_of(packed_rows(a), k->block_m) * p->n_splits;
  const int64_t rows = a->batch * a->heads_q * a->seqlen_q;
  if (packed_rows(a) > MAX_GRID_X / 2 || blocks > MAX_GRID_X || (p->n_splits > 1 && rows > MAX_GRID_X))
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "seqlen_q = %lld rows of %lld heads, in %d splits, are more than a grid holds",
                   (long long)a->seqlen_q, (long long)a->heads_q, p->n_splits);
  fa_plan_add(out, FA_ENTRY_OF(k), blocks, a->heads_kv, a->batch, k->n_threads, k->shared_bytes, p)->writes =
      FA_WRITES_FORWARD | FA_WRITES_WORKSPACE;
  out->n_splits = p->n_splits;
  if (p->n_splits == 1) return FA_OK;
  p->partial_o = fa_plan_reserve(out, call, rows * p->n_splits * a->head_dim * 4);
  p->partial_lse = fa_plan_reserve(out, call, rows * p->n_splits * 4);
  add_combine(a, p, out);
  return FA_OK;
}

fa_status fa_plan_cache(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  fa_status status = fa_cache_check_problem(a, kv, err);
  if (status == FA_OK) status = fa_cache_check_tensors(a, kv, err);
  if (status != FA_OK) return status;
  const bool copied = rotates_queries(a, kv); /* q, to where rows are aligned */
  out->family = FA_PLAN_CACHE;
  out->name = "cache_forward";
  out->aligned = (copied || fa_rows_are_aligned(a, a->q, a->q_stride)) &&
                 fa_rows_are_aligned(a, kv->k_cache, kv->k_cache_stride) &&
                 fa_rows_are_aligned(a, kv->v_cache, kv->v_cache_stride) &&
                 fa_rows_are_aligned(a, a->o, a->o_stride);
  const fa_cache_kernel *k = find_kernel(a, out->aligned, device, err);
  if (!k) return FA_ERR_UNSUPPORTED;
  fa_plan_blocks(out, k->block_m, k->block_n);
  const uint16_t *rotated = add_append(call, out);
  if (fa_attention_is_empty(a)) return FA_OK;
  fa_cache_params *p = fa_plan_params(out, sizeof *p);
  fill_attention(a, kv, p);
  if (rotated) p->q = rotated;
  p->aligned = out->aligned;
  p->n_splits = splits_of(call, k);
  return add_attention(call, k, p, out, err);
}
