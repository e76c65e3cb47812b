#include "gpu/plan/cache.h"

#include "gpu/call/check.h"
#include "gpu/call/check_cache.h"
#include "gpu/plan/splits.h"
#include "gpu/plan/forward.h"

#include <limits.h>
#include <string.h>

#define MAX_GRID_X (((int64_t)1 << 31) - 1)

static int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/* The rows of a group's heads, which share their keys. */
static int64_t packed_rows(const fa_attention *a) {
  return a->seqlen_q * (a->heads_q / a->heads_kv);
}

const fa_cache_kernel *fa_cache_kernel_for(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                     fa_error *err) {
  const int64_t rows = packed_rows(a);
  const fa_cache_ability wanted = {.bf16 = a->dtype == FA_BF16,
                                .head_dim = (int)a->head_dim,
                                .packed_rows = rows < INT_MAX ? (int)rows : INT_MAX,
                                .unaligned = !aligned,
                                .alibi = a->alibi_slopes != NULL,
                                .softcap = a->softcap > 0};
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

int fa_cache_splits(const fa_attention *a, const fa_inference *kv, const fa_cache_kernel *kernel,
                 int n_processors) {
  const fa_cache_work load = {.tiles = blocks_of(packed_rows(a), kernel->block_m) * a->heads_kv * a->batch,
                           .key_blocks = blocks_of(a->seqlen_k, kernel->block_n),
                           .block_bytes = (int64_t)kernel->block_n * a->head_dim * 2 * 2,
                           .n_processors = n_processors,
                           .blocks_per_processor = kernel->blocks_per_processor};
  return kv->splits ? (int)kv->splits : choose_splits(&load);
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

static fa_cache_launch *add_launch(fa_cache_plan *p, fa_kernel_entry kernel, int64_t x, int64_t y, int64_t z) {
  fa_cache_launch *l = &p->launch[p->n_launches++];
  *l = (fa_cache_launch){.kernel = kernel, .grid = {(unsigned)x, (unsigned)y, (unsigned)z}};
  return l;
}

static void add_append(const fa_attention *a, const fa_inference *kv, fa_cache_plan *p) {
  const fa_cache_append_params *x = &p->append;
  const int parts = (rotates_queries(a, kv) ? 1 : 0) + (kv->n_new > 0 ? 2 : 0);
  int64_t most = 0;
  if (parts == 0 || a->batch == 0) return;
  for (int i = x->first_part; i < x->first_part + parts; ++i)
    if ((int64_t)x->rows[i] * x->heads[i] > most) most = (int64_t)x->rows[i] * x->heads[i];
  int64_t blocks = blocks_of(most * (x->head_dim / 8), FA_CACHE_APPEND_THREADS);
  if (blocks > FA_CACHE_APPEND_MAX_GRID_X) blocks = FA_CACHE_APPEND_MAX_GRID_X;
  fa_cache_launch *l = add_launch(p, *fa_cache_append_find(a->dtype == FA_BF16), blocks, parts, a->batch);
  l->n_threads = FA_CACHE_APPEND_THREADS;
  l->appends = true;
}

static fa_kernel_entry entry_of(const fa_cache_kernel *k) {
  return (fa_kernel_entry){k->name, k->entry, k->recipe};
}

static fa_status add_attention(const fa_attention *a, const fa_cache_kernel *k, fa_cache_plan *p, fa_error *err) {
  const int64_t blocks = blocks_of(packed_rows(a), k->block_m) * p->attention.n_splits;
  const int64_t rows = a->batch * a->heads_q * a->seqlen_q;
  if (packed_rows(a) > MAX_GRID_X / 2 || blocks > MAX_GRID_X ||
      (p->attention.n_splits > 1 && rows > MAX_GRID_X))
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "seqlen_q = %lld rows of %lld heads, in %d splits, are more than a grid holds",
                   (long long)a->seqlen_q, (long long)a->heads_q, p->attention.n_splits);
  fa_cache_launch *l = add_launch(p, entry_of(k), blocks, a->heads_kv, a->batch);
  l->n_threads = (unsigned)k->n_threads;
  l->shared_bytes = k->shared_bytes;
  if (p->attention.n_splits == 1) return FA_OK;
  const fa_cache_kernel *combine = fa_cache_combine_find(a->dtype == FA_BF16);
  l = add_launch(p, entry_of(combine), blocks_of(rows, combine->block_m), 1, 1);
  l->n_threads = (unsigned)combine->n_threads;
  l->shared_bytes = combine->shared_bytes;
  l->overlaps = true;
  return FA_OK;
}

static size_t reserve(fa_cache_plan *p, int64_t bytes) {
  const size_t at = p->workspace_bytes;
  p->workspace_bytes += ((size_t)bytes + 255) / 256 * 256;
  return at;
}

static void lay_out(const fa_attention *a, const fa_inference *kv, fa_cache_plan *p) {
  const int64_t rows = a->batch * a->heads_q * a->seqlen_q, partial = rows * p->attention.n_splits;
  if (rotates_queries(a, kv)) p->queries_at = reserve(p, rows * a->head_dim * 2);
  if (p->attention.n_splits == 1) return;
  p->partial_o_at = reserve(p, partial * a->head_dim * 4);
  p->partial_lse_at = reserve(p, partial * 4);
}

fa_status fa_cache_plan_make(const fa_attention *a, const fa_inference *kv, const fa_kernel_device *device,
                          int n_processors, fa_cache_plan *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  fa_status status = fa_cache_check_problem(a, kv, err);
  if (status == FA_OK) status = fa_cache_check_tensors(a, kv, err);
  if (status != FA_OK) return status;
  const bool copied = rotates_queries(a, kv); /* q, to where rows are aligned */
  out->aligned = (copied || fa_rows_are_aligned(a, a->q, a->q_stride)) &&
                 fa_rows_are_aligned(a, kv->k_cache, kv->k_cache_stride) &&
                 fa_rows_are_aligned(a, kv->v_cache, kv->v_cache_stride) &&
                 fa_rows_are_aligned(a, a->o, a->o_stride);
  const fa_cache_kernel *kernel = fa_cache_kernel_for(a, out->aligned, device, err);
  if (!kernel) return FA_ERR_UNSUPPORTED;
  fill_append(a, kv, &out->append);
  add_append(a, kv, out);
  if (fa_attention_is_empty(a)) return FA_OK;
  fill_attention(a, kv, &out->attention);
  out->attention.aligned = out->aligned;
  out->attention.n_splits = fa_cache_splits(a, kv, kernel, n_processors);
  lay_out(a, kv, out);
  return add_attention(a, kernel, out, err);
}

void fa_cache_plan_place(fa_cache_plan *plan, void *workspace) {
  char *at = (char *)workspace;
  if (plan->append.rotary_dim > 0 && plan->append.first_part == FA_CACHE_Q) {
    plan->append.to[FA_CACHE_Q] = (uint16_t *)(void *)(at + plan->queries_at);
    plan->attention.q = plan->append.to[FA_CACHE_Q];
  }
  if (plan->attention.n_splits <= 1) return;
  plan->attention.partial_o = (float *)(void *)(at + plan->partial_o_at);
  plan->attention.partial_lse = (float *)(void *)(at + plan->partial_lse_at);
}

const void *fa_cache_plan_params(const fa_cache_plan *plan, int launch) {
  return plan->launch[launch].appends ? (const void *)&plan->append : &plan->attention;
}
