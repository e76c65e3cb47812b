/* The kernels of ordinary keys over a cache. They take it as it lies where strides can say so; of pages, of cache rows in
 * another order and beside packed queries they are given a copy in the workspace, which costs a read and a write of all keys. */
#include "gpu/plan/parts.h"

#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/kernels/params/cache.h"
#include "gpu/kernels/registry/select.h"

/* For what has no address yet: aligned, and nobody follows it. */
#define NOWHERE ((void *)256)

bool fa_cache_goes_by_elements(const fa_attention *a) {
  return a->dtype == FA_F32 || a->head_dim % 8 != 0 || fa_attention_head_dim_v(a) % 8 != 0;
}

/* Rows that the kernels over a cache do not have. */
static bool has_other_rows(const fa_attention *a) {
  return fa_cache_goes_by_elements(a) || a->head_dim > FA_CACHE_MAX_HEAD_DIM ||
         fa_attention_head_dim_v(a) > FA_CACHE_MAX_HEAD_DIM_V;
}

bool fa_cache_is_gathered(const fa_attention *a) {
  return a->bias || a->dropout_p > 0 || a->flex || has_other_rows(a);
}

static bool is_copied(const fa_attention *a, const fa_inference *kv) {
  return a->cu_seqlens_q || kv->block_table || kv->cache_batch_idx;
}

static fa_strides copy_stride(const fa_attention *a, int64_t columns) {
  return fa_strides_dense(a->seqlen_k, a->heads_kv, columns);
}

/* The call over ordinary keys, all but their addresses. */
static void derive(const fa_attention *a, const fa_inference *kv, fa_attention *own) {
  *own = *a;
  own->splits = kv->splits > 1 ? kv->splits : 1;
  own->seqused_k = NOWHERE;
  if (!a->cu_seqlens_q) return;
  own->cu_seqlens_k = NOWHERE;
  own->total_k = a->batch * a->seqlen_k;
}

fa_status fa_cache_gathered_supported(const fa_attention *a, const fa_inference *kv,
                                      const fa_kernel_device *device, fa_error *err) {
  fa_attention own;
  derive(a, kv, &own);
  const fa_status status = fa_attention_check_problem(&own, err);
  if (status != FA_OK) return status;
  const fa_call inner = {.kind = FA_CALL_FORWARD, .a = &own};
  return fa_any_forward_supported(&inner, device, err);
}

/* ---- keys ---- */

static void take_cache(const fa_inference *kv, fa_attention *own) {
  own->k = kv->k_cache;
  own->k_stride = kv->k_cache_stride;
  own->v = kv->v_in_k ? kv->k_cache : kv->v_cache;
  own->v_stride = kv->v_in_k ? kv->k_cache_stride : kv->v_cache_stride;
}

static void *reserve(const fa_call *call, int64_t bytes, fa_plan *out) {
  void *at = fa_plan_reserve(out, call, bytes);
  return at ? at : NOWHERE;
}

static void take_copy(const fa_call *call, fa_cache_gather_params *p, fa_attention *own, fa_plan *out) {
  const int64_t rows = own->batch * own->seqlen_k * own->heads_kv, head_dim_v = fa_attention_head_dim_v(own);
  const int bytes = fa_attention_element_bytes(own);
  own->k = p->to[0] = reserve(call, rows * own->head_dim * bytes, out);
  own->k_stride = copy_stride(own, own->head_dim);
  own->v = own->k;
  own->v_stride = own->k_stride;
  if (call->cache->v_in_k) return;
  own->v = p->to[1] = reserve(call, rows * head_dim_v * bytes, out);
  own->v_stride = copy_stride(own, head_dim_v);
}

/* In units of 16 bits. */
static fa_strides in_halves(fa_strides s, int halves) {
  return (fa_strides){s.batch * halves, s.row * halves, s.head * halves};
}

static void fill_part(const fa_attention *a, fa_cache_gather_params *p, int part, const void *from,
                      fa_strides s, int64_t columns) {
  const int halves = fa_attention_element_bytes(a) / 2;
  p->from[part] = from;
  p->from_stride[part] = fa_kernel_strides_of(in_halves(s, halves), true);
  p->columns[part] = (int)(columns * halves);
  p->aligned[part] = fa_cache_is_aligned(a, from, s) && p->columns[part] % 8 == 0;
}

static fa_cache_gather_params *fill(const fa_attention *a, const fa_inference *kv, fa_plan *out) {
  fa_cache_gather_params *p = fa_plan_params(out, sizeof *p);
  *p = (fa_cache_gather_params){.heads = (int)a->heads_kv,
                                .slots = (int)a->seqlen_k,
                                .n_new = (int)kv->n_new,
                                .cache_seqlens = kv->cache_seqlens,
                                .cache_batch_idx = kv->cache_batch_idx,
                                .block_table = kv->block_table,
                                .block_table_stride = kv->block_table_stride,
                                .page_size = (int)kv->page_size};
  fill_part(a, p, 0, kv->k_cache, kv->k_cache_stride, a->head_dim);
  if (!kv->v_in_k) fill_part(a, p, 1, kv->v_cache, kv->v_cache_stride, fa_attention_head_dim_v(a));
  return p;
}

/* What a thread copies at a time, of all keys of a part; 0: nothing is copied. */
static int64_t units_of(const fa_attention *a, const fa_cache_gather_params *p, int part) {
  return p->to[part] ? a->seqlen_k * a->heads_kv * (p->columns[part] / (p->aligned[part] ? 8 : 1)) : 0;
}

/* One block a sequence at least, which writes the lengths. */
static void add_launch(const fa_attention *a, const fa_cache_gather_params *p, fa_plan *out) {
  const int64_t k = units_of(a, p, 0), v = units_of(a, p, 1);
  int64_t blocks = fa_blocks_of(k > v ? k : v, FA_CACHE_GATHER_THREADS);
  if (blocks < 1) blocks = 1;
  if (blocks > FA_CACHE_GATHER_MAX_GRID_X) blocks = FA_CACHE_GATHER_MAX_GRID_X;
  fa_plan_add(out, *fa_cache_gather_find(), blocks, p->to[1] ? 2 : 1, a->batch, FA_CACHE_GATHER_THREADS, 0,
              (void *)p)
      ->writes = FA_WRITES_WORKSPACE;
}

static void place_keys(const fa_call *call, fa_attention *own, fa_plan *out) {
  const fa_inference *kv = call->cache;
  const bool copied = is_copied(own, kv);
  if (!copied) take_cache(kv, own);
  own->seqused_k = kv->cache_seqlens;
  if (!copied && kv->n_new == 0) return;
  fa_cache_gather_params *p = fill(own, kv, out);
  if (copied) take_copy(call, p, own, out);
  own->seqused_k = p->lengths = reserve(call, own->batch * 4, out);
  if (own->cu_seqlens_q) own->cu_seqlens_k = p->first = reserve(call, (own->batch + 1) * 4, out);
  add_launch(own, p, out);
}

/* ---- the call ---- */

fa_status fa_cache_add_gathered(const fa_call *call, const void *q, fa_strides q_stride,
                                const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  fa_attention own;
  fa_call inner = *call;
  derive(call->a, call->cache, &own);
  own.q = q ? q : NOWHERE;
  own.q_stride = q_stride;
  if (!fa_attention_is_empty(&own)) place_keys(call, &own, out);
  inner.kind = FA_CALL_FORWARD;
  inner.a = &own;
  inner.cache = NULL;
  const int before = out->n_launches;
  const fa_status status = fa_plan_any_forward(&inner, device, out, err);
  for (int i = before; i < out->n_launches; ++i) out->launch[i].writes |= FA_WRITES_WORKSPACE;
  return status;
}
