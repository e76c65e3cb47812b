#include "gpu/plan/hopper_cache.h"

#include "gpu/call/check.h"
#include "gpu/kernels/params/hopper_cache.h"
#include "gpu/plan/cache_forward.h"
#include "gpu/plan/hopper.h"

/* ---- which calls ---- */

/* Keys of a box: the most that blocks and pages are multiples of. */
static int piece_of(const fa_inference *kv, const fa_kernel *k) {
  int64_t piece = k->block_n, rest = kv->block_table ? kv->page_size % piece : 0;
  while (rest > 0) {
    const int64_t divisor = rest;
    rest = piece % divisor;
    piece = divisor;
  }
  return (int)piece;
}
/* Boxes are whole atoms of the swizzle, and there is a lane for each. */
static bool has_whole_pieces(const fa_inference *kv, const fa_kernel *k) {
  return piece_of(kv, k) % 16 == 0;
}

/* Plain calls. `large` ones have lists of keys, V in K, or two head dims. */
static bool is_possible(const fa_call *call, const fa_cache_kernel *portable, const fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  return out->aligned && !portable->ability.large && !kv->quantized && a->scale > 0 && a->chunk == 0 &&
         !a->mask_bits && !a->alibi_slopes && a->softcap == 0 && !a->cu_seqlens_k && a->seqlen_k > 0 &&
         !(a->leftpad_k && kv->block_table) && kv->splits <= 1;
}

/* Heads that share tiles, as a power of 2: the largest that divides a group, up to the rows of a warp. */
static int pack_of(const fa_attention *a) {
  const int64_t group = a->heads_q / a->heads_kv;
  int pack = 0;
  while (pack < 4 && group % ((int64_t)2 << pack) == 0) ++pack;
  return pack;
}

/* At most: of packed queries the host knows the longest sequence and all rows. */
static int64_t tiles_of(const fa_attention *a, const fa_kernel *k) {
  const int pack = pack_of(a);
  const int64_t most = fa_blocks_of(a->seqlen_q << pack, k->block_m) * a->batch;
  const int64_t packed = fa_blocks_of(a->total_q << pack, k->block_m) + a->batch;
  return (a->cu_seqlens_q && packed < most ? packed : most) * (a->heads_q >> pack);
}

/* Nanoseconds that a multiprocessor takes for a key of 128 columns: with 128 rows here, and with 64 in the portable
 * kernels; to have it from memory, when all of them read; and for a combine. */
static const double HOPPER_NS = 13.3, PORTABLE_NS = 14.4, MEMORY_NS = 20.5, COMBINE_NS = 3000.0;
enum { ROWS_OF_A_GROUP = 64 };

/* Whether the kernel is faster than the portable one. Up to a consumer's rows it reads the cache no faster than that
 * does; and without splits, with few tiles of long sequences, it leaves processors idle. */
static bool is_faster(const fa_call *call, const fa_kernel *k, const fa_cache_kernel *portable) {
  const fa_attention *a = call->a;
  const int64_t keys = a->seqlen_k + call->cache->n_new, n = call->n_processors;
  if (a->seqlen_q * (a->heads_q / a->heads_kv) <= ROWS_OF_A_GROUP) return false;
  const int splits = fa_cache_splits_of(call, portable);
  const int64_t rounds = fa_blocks_of(tiles_of(a, k), n);
  const double own = (double)rounds * (double)keys * (rounds > 1 ? HOPPER_NS * k->block_m / 128 : MEMORY_NS);
  const double others = (double)fa_blocks_of(fa_cache_tiles(a, call->cache, portable->block_m) * splits, n) *
                        (double)fa_blocks_of(keys, splits) * PORTABLE_NS;
  return splits == 1 || own <= others + COMBINE_NS * 128 / (double)a->head_dim;
}

/* ---- parameters ---- */

/* Of q or o: a box of so many rows of tiles. */
static bool fill_rows(fa_tensor_map *map, const fa_attention *a, const void *base, fa_strides s, int pack,
                      int box_rows) {
  const bool packed = a->cu_seqlens_q != NULL;
  const fa_hopper_axis axes[3] = {{a->heads_q, s.head, 1 << pack},
                                  {packed ? a->total_q : a->seqlen_q, s.row, box_rows >> pack},
                                  {packed ? 1 : a->batch, s.batch, 1}};
  return fa_hopper_fill_map(map, a, base, a->head_dim, axes);
}

static bool fill_keys(fa_tensor_map *map, const fa_attention *a, const fa_inference *kv, const void *base,
                      fa_strides s, int piece) {
  const fa_hopper_axis axes[3] = {{kv->block_table ? kv->page_size : a->seqlen_k, s.row, piece},
                                  {a->heads_kv, s.head, 1},
                                  {kv->cache_rows, s.batch, 1}};
  return fa_hopper_fill_map(map, a, base, a->head_dim, axes);
}

static bool fill_maps(const fa_call *call, fa_hopper_cache_queries q, fa_hopper_cache_params *p) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  const void *const from = q.data ? q.data : a->o; /* without a workspace yet, some aligned place */
  return fill_rows(&p->q, a, from, q.stride, p->pack, 64) &&
         fill_rows(&p->o, a, a->o, a->o_stride, p->pack, 16) &&
         fill_keys(&p->k, a, kv, kv->k_cache, kv->k_cache_stride, p->piece) &&
         fill_keys(&p->v, a, kv, kv->v_cache, kv->v_cache_stride, p->piece);
}

/* Sections whose keys stay in the L2 cache while all their row blocks pass, where those differ in how many they see. */
static int section_of(const fa_attention *a, const fa_hopper_cache_params *p) {
  const int64_t cache = (int64_t)32 << 20, of_kv_head = a->seqlen_k * a->head_dim * 4;
  const int64_t sharing = p->f.heads_per_kv >> p->pack; /* groups of heads of a KV head */
  int section = 1;
  if (p->f.window_right < 0) return 1;
  while (2 * section <= p->tiles.heads && 2 * section * of_kv_head <= cache * sharing) section *= 2;
  return section;
}

/* Packed queries most of which are not nearly as long as the longest: some decode. */
static bool is_mixed(const fa_attention *a) {
  return a->cu_seqlens_q && a->total_q * 2 < a->seqlen_q * a->batch;
}

static void fill_params(const fa_call *call, const fa_kernel *k, fa_hopper_cache_params *p) {
  const fa_attention *a = call->a;
  const fa_inference *kv = call->cache;
  fa_attention_params_fill(a, &p->f);
  p->batch = (int)a->batch;
  p->pack = pack_of(a);
  p->tiles = (fa_tile_scheduler_params){.row_blocks = (int)fa_blocks_of(a->seqlen_q << p->pack, k->block_m),
                                        .heads = (int)a->heads_q >> p->pack,
                                        .last_first = p->f.window_right >= 0,
                                        .counter = -1};
  p->tiles.section = section_of(a, p);
  p->both_ends = is_mixed(a);
  p->n_new = (int)kv->n_new;
  p->cache_seqlens = kv->cache_seqlens;
  p->cache_batch_idx = kv->cache_batch_idx;
  p->block_table = kv->block_table;
  p->table_stride = kv->block_table_stride;
  p->page_size = (int)kv->page_size;
  p->piece = piece_of(kv, k);
}

bool fa_hopper_add_cache(const fa_call *call, const fa_cache_kernel *portable, fa_hopper_cache_queries q,
                         const fa_kernel_device *device, fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_kernel *k = fa_hopper_cache_find(fa_kernel_wanted(a, out->aligned), device);
  if (!k || !is_possible(call, portable, out) || !has_whole_pieces(call->cache, k) ||
      !is_faster(call, k, portable))
    return false;
  fa_hopper_cache_params *p = fa_plan_params(out, sizeof *p);
  *p = (fa_hopper_cache_params){.batch = 0};
  fill_params(call, k, p);
  const int64_t tiles = tiles_of(a, k);
  if (tiles > 1 << 30 || a->seqlen_q > 1 << 25 || !fill_maps(call, q, p)) {
    fa_plan_params_drop(out, sizeof *p);
    return false;
  }
  fa_launch *l = fa_plan_add(out, FA_ENTRY_OF(k), tiles < device->hopper ? tiles : device->hopper, 1, 1,
                             k->n_threads, k->shared_bytes, p);
  l->n_maps = 4;
  l->counter = &p->tiles.counter;
  l->writes = FA_WRITES_FORWARD | FA_WRITES_WORKSPACE;
  out->is_hopper = true;
  out->name = "hopper_cache";
  fa_plan_blocks(out, k->block_m, k->block_n);
  return true;
}
