/* What attention over a cache launches, and over ordinary keys whose work is split: a kernel for the rows and
 * splits, and one that combines. */
#include "gpu/plan/cache_forward.h"

#include "gpu/call/check.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/latent.h"
#include "gpu/plan/splits.h"

#include <limits.h>

#define MAX_GRID_X (((int64_t)1 << 31) - 1)

static bool has_v_in_k(const fa_inference *kv) {
  return kv && kv->v_in_k;
}
static bool has_lists(const fa_inference *kv) {
  return kv && kv->topk_indices;
}

/* The rows of a group's heads. */
static int64_t packed_rows(const fa_attention *a) {
  return a->seqlen_q * (a->heads_q / a->heads_kv);
}

/* Those that share their keys: with lists, of one query. */
static int64_t sharing_rows(const fa_attention *a, const fa_inference *kv) {
  return has_lists(kv) ? a->heads_q / a->heads_kv : packed_rows(a);
}

/* Blocks of rows of a sequence and a KV head. */
static int64_t row_blocks(const fa_attention *a, const fa_inference *kv, int block_m) {
  return fa_blocks_of(sharing_rows(a, kv), block_m) * (has_lists(kv) ? a->seqlen_q : 1);
}

static fa_cache_ability wanted_of(const fa_attention *a, const fa_inference *kv, bool aligned) {
  const int64_t rows = sharing_rows(a, kv);
  return (fa_cache_ability){.bf16 = a->dtype == FA_BF16,
                            .cache_dtype = kv && kv->quantized ? (int)kv->cache_dtype : 0,
                            .head_dim = (int)fa_attention_widest(a),
                            .large =
                                has_v_in_k(kv) || has_lists(kv) || fa_attention_head_dim_v(a) != a->head_dim,
                            .v_in_k = has_v_in_k(kv),
                            .packed_rows = rows < INT_MAX ? (int)rows : INT_MAX,
                            .unaligned = !aligned,
                            .alibi = a->alibi_slopes != NULL,
                            .softcap = a->softcap > 0,
                            .chunk = a->chunk > 0,
                            .mask_bits = a->mask_bits != NULL,
                            .sinks = a->sinks != NULL};
}

const fa_cache_kernel *fa_cache_kernel_of(const fa_attention *a, const fa_inference *kv, bool aligned,
                                          const fa_kernel_device *device, fa_error *err) {
  const fa_cache_ability wanted = wanted_of(a, kv, aligned);
  const fa_cache_kernel *k = fa_latent_is_possible(a, kv) ? fa_latent_find(a, wanted, device) : NULL;
  if (!k) k = fa_cache_forward_find(wanted, device);
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

const fa_cache_kernel *fa_cache_filling(const fa_call *call, const fa_cache_kernel *k, bool aligned,
                                        const fa_kernel_device *device) {
  if (fa_cache_tiles(call->a, call->cache, k->block_m) > call->n_processors) return k;
  const fa_cache_kernel *filling = fa_cache_filling_find(wanted_of(call->a, call->cache, aligned), device);
  return filling && filling->ability.head_dim == k->ability.head_dim ? filling : k;
}

static bool same_work(const fa_cache_work *a, const fa_cache_work *b) {
  return a->tiles == b->tiles && a->key_blocks == b->key_blocks && a->block_bytes == b->block_bytes &&
         a->n_processors == b->n_processors && a->blocks_per_processor == b->blocks_per_processor &&
         a->filling == b->filling && a->sharing == b->sharing && a->block_ns == b->block_ns && a->part_bytes == b->part_bytes;
}

/* Layer after layer asks the same, and the answer costs more than all else on the host. */
static int choose_splits(const fa_cache_work *load) {
  static _Thread_local fa_cache_work last;
  static _Thread_local int answer;
  if (answer && same_work(&last, load)) return answer;
  last = *load;
  answer = fa_cache_splits_choose(load);
  return answer;
}
static int choose_cluster(const fa_cache_work *load, int most) {
  static _Thread_local fa_cache_work last;
  static _Thread_local int answer, last_most;
  if (last_most == most && same_work(&last, load)) return answer;
  last = *load;
  last_most = most;
  answer = fa_cache_cluster_choose(load, most);
  return answer;
}

/* Blocks of rows. Of packed queries the host knows the longest sequence and all rows: a block for every
 * sequence at most is not full. */
int64_t fa_cache_tiles(const fa_attention *a, const fa_inference *kv, int block_m) {
  const int64_t most = row_blocks(a, kv, block_m) * a->batch, heads = a->heads_q / a->heads_kv;
  const int64_t packed = has_lists(kv) ? a->total_q * fa_blocks_of(heads, block_m)
                                       : fa_blocks_of(a->total_q * heads, block_m) + a->batch;
  return (a->cu_seqlens_q && packed < most ? packed : most) * a->heads_kv;
}

/* Of the call, each head's apart: what partial results have. */
static int64_t all_rows(const fa_attention *a) {
  return a->heads_q * (a->cu_seqlens_q ? a->total_q : a->batch * a->seqlen_q);
}

/* That are read of a key and its value. */
static int64_t columns_of_key(const fa_call *call) {
  return call->a->head_dim + (has_v_in_k(call->cache) ? 0 : fa_attention_head_dim_v(call->a));
}

/* Of so many columns of a cache of a type, 0: of 16 bits. */
static int64_t bytes_of_columns(int64_t columns, int cache_dtype) {
  if (cache_dtype == FA_E2M1) return columns / 2 + columns / FA_CACHE_SCALED;
  return columns * (cache_dtype ? 1 : 2);
}

static fa_cache_work work_of(const fa_call *call, const fa_cache_kernel *k) {
  const fa_attention *a = call->a;
  const bool is_latent = fa_latent_is(k);
  return (fa_cache_work){
      .tiles = fa_cache_tiles(a, call->cache, k->block_m),
      .key_blocks = fa_blocks_of(has_lists(call->cache) ? call->cache->topk : a->seqlen_k, k->block_n),
      .block_bytes = k->block_n * bytes_of_columns(columns_of_key(call), k->ability.cache_dtype),
      .n_processors = call->n_processors,
      .blocks_per_processor = k->blocks_per_processor,
      .filling = k->ability.cache_dtype && !k->ability.large ? k->blocks_per_processor : 0, /* makes elements of bytes */
      .sharing = is_latent ? row_blocks(a, call->cache, k->block_m) : 1,
      .block_ns = is_latent ? FA_LATENT_BLOCK_NS : 0,
      .part_bytes = is_latent ? all_rows(a) * fa_attention_head_dim_v(a) * 4 : 0};
}

int fa_cache_splits_of(const fa_call *call, const fa_cache_kernel *k) {
  const fa_cache_work load = work_of(call, k);
  return call->cache->splits ? (int)call->cache->splits : choose_splits(&load);
}

/* ---- parameters ---- */

void fa_cache_params_fill(const fa_attention *a, fa_cache_params *p) {
  fa_attention_params f;
  fa_attention_params_fill(a, &f);
  *p = (fa_cache_params){.q = f.q,
                         .k = f.k,
                         .v = f.v,
                         .o = f.o,
                         .lse = f.lse,
                         .q_stride = f.q_stride,
                         .k_stride = f.k_stride,
                         .v_stride = f.v_stride,
                         .o_stride = f.o_stride,
                         .lse_stride = f.lse_stride,
                         .batch = (int)a->batch,
                         .seqlen_q = f.seqlen_q,
                         .heads_q = f.heads_q,
                         .heads_kv = (int)a->heads_kv,
                         .heads_per_kv = f.heads_per_kv,
                         .cu_seqlens_q = f.cu_seqlens_q,
                         .cu_seqlens_k = f.cu_seqlens_k,
                         .rows_of_head = a->cu_seqlens_q ? a->total_q : a->seqlen_q,
                         .head_dim = f.head_dim,
                         .head_dim_v = f.head_dim_v,
                         .seqlen_k = f.seqlen_k,
                         .cache_seqlens = f.seqused_k,
                         .leftpad_k = f.leftpad_k,
                         .window_left = f.window_left,
                         .window_right = f.window_right,
                         .chunk = f.chunk,
                         .mask_bits = f.mask_bits,
                         .mask_indptr = f.mask_indptr,
                         .sinks = f.sinks,
                         .sinks_in_lse = f.sinks_in_lse,
                         .lse_padded = f.lse_padded,
                         .top_left = f.top_left,
                         .scale = f.scale,
                         .scale_log2 = f.scale_log2,
                         .score_sign = f.score_sign,
                         .softcap = f.softcap,
                         .alibi_slopes = f.alibi_slopes,
                         .alibi_batch_stride = f.alibi_batch_stride,
                         .empty_lse = f.empty_lse,
                         .n_splits = 1};
}

/* ---- launches ---- */

/* The parameters of the combine, which knows O alone. */
static fa_cache_params *params_of_combine(fa_cache_params *p, fa_plan *out) {
  if (p->head_dim_v == p->head_dim) return p;
  fa_cache_params *of_o = fa_plan_params(out, sizeof *of_o);
  *of_o = *p;
  of_o->head_dim = p->head_dim_v;
  return of_o;
}

static fa_writes writes_of(const fa_cache_params *p) {
  return FA_WRITES_FORWARD | FA_WRITES_WORKSPACE | (p->amax.p ? FA_WRITES_AMAX : 0);
}

/* Waits itself for the launch before it. */
static void add_combine(const fa_attention *a, fa_cache_params *p, fa_plan *out) {
  const fa_cache_kernel *k = fa_cache_combine_find(a->dtype == FA_BF16);
  fa_launch *l = fa_plan_add(out, FA_ENTRY_OF(k), fa_blocks_of(all_rows(a), k->block_m), 1, 1, k->n_threads,
                             k->shared_bytes, params_of_combine(p, out));
  l->overlaps = true;
  l->writes = writes_of(p);
}

/* The kernel whose splits are a cluster, where it can do what k does and is faster; then *n_splits is how many. Those that
 * the caller asks for, of a cache or of ordinary keys, stay. */
static const fa_cache_kernel *clustered(const fa_call *call, const fa_cache_kernel *k,
                                        const fa_kernel_device *device, const fa_plan *out, int *n_splits) {
  const fa_inference *kv = call->cache;
  if (fa_latent_is(k) || (kv && kv->block_table)) return NULL;
  const fa_cache_kernel *by_cluster = fa_hopper_decode_find(wanted_of(call->a, kv, out->aligned), device);
  if (!by_cluster) return NULL;
  const fa_cache_work load = work_of(call, by_cluster);
  const bool is_asked_for = kv && kv->splits;
  const int n = is_asked_for || !kv ? *n_splits : choose_cluster(&load, by_cluster->cluster);
  if (n < 2 || n > by_cluster->cluster || (!is_asked_for && !fa_cache_clusters_fit(&load, n))) return NULL;
  *n_splits = n;
  return by_cluster;
}

static fa_status check_grid(const fa_attention *a, int64_t blocks, int n_splits, fa_error *err) {
  if (packed_rows(a) <= MAX_GRID_X / 2 && blocks <= MAX_GRID_X &&
      (n_splits == 1 || all_rows(a) <= MAX_GRID_X))
    return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "seqlen_q = %lld rows of %lld heads, in %d splits, are more than a grid holds",
                 (long long)a->seqlen_q, (long long)a->heads_q, n_splits);
}

fa_status fa_cache_add_forward(const fa_call *call, const fa_cache_kernel *k, void *params,
                               fa_cache_params *p, const fa_kernel_device *device, fa_plan *out,
                               fa_error *err) {
  const fa_attention *a = call->a;
  const fa_cache_kernel *const by_cluster = clustered(call, k, device, out, &p->n_splits);
  if (by_cluster) k = by_cluster;
  const int64_t blocks = row_blocks(a, call->cache, k->block_m) * p->n_splits, rows = all_rows(a);
  const fa_status status = check_grid(a, blocks, p->n_splits, err);
  if (status != FA_OK) return status;
  fa_launch *l =
      fa_plan_add(out, FA_ENTRY_OF(k), blocks, a->heads_kv, a->batch, k->n_threads, k->shared_bytes, params);
  l->writes = writes_of(p);
  l->n_maps = k->n_maps;
  l->cluster = by_cluster ? (unsigned)p->n_splits : k->cluster > 1 ? (unsigned)k->cluster : 0;
  out->n_splits = p->n_splits;
  if (by_cluster) {
    out->is_hopper = true;
    out->name = "hopper_decode";
    fa_plan_blocks(out, k->block_m, k->block_n);
  }
  if (p->n_splits == 1 || by_cluster) return FA_OK;
  p->partial_o = fa_plan_reserve(out, call, rows * p->n_splits * p->head_dim_v * 4);
  p->partial_lse = fa_plan_reserve(out, call, rows * p->n_splits * 4);
  if (p->amax.p) p->partial_p = fa_plan_reserve(out, call, rows * p->n_splits * 4);
  add_combine(a, p, out);
  return FA_OK;
}
