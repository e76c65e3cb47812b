/* Forward calls with expressions or block lists, and calls that make such lists. */
#include "gpu/call/check.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/flex_parts.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/split.h"

#define MAX_LIST ((int64_t)1 << 38) /* entries of a tile list */

/* ---- parts ---- */

fa_flex_builder fa_flex_builder_make(const fa_call *call, fa_plan *out) {
  const fa_flex *f = call->a->flex;
  fa_flex_builder b = {.call = call, .out = out};
  fa_attention_params_fill(call->a, &b.params);
  b.params.aligned = out->aligned;
  b.params.flex.functions = call->functions;
  for (int k = 0; f->program && k < f->program->n_buffers; ++k) b.params.flex.buffer[k] = f->buffer[k];
  return b;
}

void *fa_flex_reserve(fa_flex_builder *b, int64_t bytes) {
  return fa_plan_reserve(b->out, b->call, bytes);
}

bool fa_flex_is_short(const fa_attention *a) {
  return a->seqlen_q <= FA_FLEX_SHORT && a->seqlen_k <= FA_FLEX_SHORT;
}

static unsigned lacks_unless(bool has, fa_trait what) {
  return has ? 0 : what;
}

/* Without expressions all calls have the same kernels: those know nothing of them. */
void fa_flex_compile_in(const fa_flex_builder *b, fa_mods mods, const fa_attention_params *p,
                        const void *dbias, fa_launch *l) {
  const bool windows = p->window_left >= 0 || p->window_right >= 0 || p->chunk > 0;
  const bool lengths = p->cu_seqlens_q || p->cu_seqlens_k || p->seqused_k || p->leftpad_k;
  const bool wide = p->head_dim > FA_NARROW || p->head_dim_v > FA_NARROW;
  l->mods = mods;
  if (!b->call->a->flex->program) return;
  l->lacks = lacks_unless(p->softcap > 0, FA_HAS_SOFTCAP) | lacks_unless(p->alibi_slopes, FA_HAS_ALIBI) |
             lacks_unless(p->bias, FA_HAS_BIAS) | lacks_unless(dbias, FA_HAS_DBIAS) |
             lacks_unless(windows, FA_HAS_WINDOW) | lacks_unless(lengths, FA_HAS_LENGTHS) |
             lacks_unless(p->aligned, FA_HAS_ALIGNED) | lacks_unless(!p->aligned, FA_HAS_UNALIGNED) |
             lacks_unless(fa_flex_has_blocks(b->call->a), FA_HAS_BLOCKS) |
             lacks_unless(p->sinks, FA_HAS_SINKS) | lacks_unless(wide, FA_HAS_WIDE);
}

/* batch: sequences that have a map, or lists, of their own. */
static fa_flex_lists_params *add_lists(fa_flex_builder *b, fa_flex_lists_kernel which, int64_t n,
                                       int64_t batch) {
  fa_flex_lists_params *p = fa_plan_params(b->out, sizeof *p);
  *p = (fa_flex_lists_params){.call = b->params, .map = b->map};
  fa_launch *l = fa_plan_add(b->out, *fa_flex_lists_find(which), fa_blocks_of(n, FA_FLEX_LISTS_WARPS),
                             b->map_heads, batch, FA_FLEX_LISTS_THREADS, 0, p);
  l->mods = which == FA_FLEX_LISTS_MASK ? FA_MODS_MASK : FA_MODS_NONE;
  l->writes = FA_WRITES_WORKSPACE;
  return p;
}

void fa_flex_add_map(fa_flex_builder *b, bool from_mask_mod, int64_t map_batch, int64_t map_heads) {
  const fa_attention *a = b->call->a;
  const fa_flex *f = a->flex;
  fa_flex_args *x = &b->params.flex;
  const int64_t blocks = fa_flex_n_q(a) * fa_flex_n_kv(a);
  b->map_batch = map_batch;
  b->map_heads = map_heads;
  x->q_block = (int)f->q_block;
  x->kv_block = (int)f->kv_block;
  x->n_q_blocks = (int)fa_flex_n_q(a);
  x->n_kv_blocks = (int)fa_flex_n_kv(a);
  x->map_head_stride = map_heads > 1 ? blocks : 0;
  x->map_batch_stride = map_batch > 1 ? blocks * map_heads : 0;
  if (blocks == 0) return;
  x->map = b->map = fa_flex_reserve(b, blocks * map_heads * map_batch);
  if (from_mask_mod) {
    add_lists(b, FA_FLEX_LISTS_MASK, blocks, map_batch);
    return;
  }
  fa_flex_lists_params *p = add_lists(b, FA_FLEX_LISTS_MAP, x->n_q_blocks, map_batch);
  p->partial = (fa_flex_block_list){(int32_t *)f->kv_num_blocks, (int32_t *)f->kv_indices}; /* only read */
  p->full = (fa_flex_block_list){(int32_t *)f->full_kv_num_blocks, (int32_t *)f->full_kv_indices};
  p->list_batch = (int)f->list_batch;
  p->list_heads = (int)f->list_heads;
}

/* For how many sequences tiles are listed: packed ones have lists of their own even of one map, cut to their lengths. */
static int64_t listed_batch(const fa_attention *a) {
  return fa_attention_is_varlen(a) ? a->batch : fa_flex_map_batch(a);
}

fa_flex_lists fa_flex_add_tiles(fa_flex_builder *b, bool by_rows, int tile_m, int tile_n) {
  fa_flex_lists lists = {0};
  const fa_attention *a = b->call->a;
  if (!fa_flex_has_blocks(a)) return lists;
  const int64_t rows = fa_blocks_of(a->seqlen_q, tile_m), keys = fa_blocks_of(a->seqlen_k, tile_n);
  const int64_t batch = listed_batch(a), all = batch * b->map_heads;
  lists.n = (int)(by_rows ? keys : rows);
  lists.capacity = (int)(by_rows ? rows : keys);
  lists.head_stride = b->map_heads > 1 ? lists.n : 0;
  lists.batch_stride = batch > 1 ? lists.n * b->map_heads : 0;
  int32_t *count = fa_flex_reserve(b, all * lists.n * 4);
  int32_t *entry = fa_flex_reserve(b, all * lists.n * lists.capacity * 4);
  fa_flex_lists_params *p = add_lists(b, FA_FLEX_LISTS_TILES, lists.n, batch);
  p->by_rows = by_rows;
  p->tile_m = tile_m;
  p->tile_n = tile_n;
  p->tile_count = count;
  p->tile_entry = entry;
  p->n_tiles = lists.n;
  p->capacity = lists.capacity;
  lists.count = count;
  lists.entry = entry;
  return lists;
}

fa_status fa_flex_check_tiles(const fa_attention *a, int tile_m, int tile_n, fa_error *err) {
  const int64_t tiles = fa_blocks_of(a->seqlen_q, tile_m) * fa_blocks_of(a->seqlen_k, tile_n);
  if (!fa_flex_has_blocks(a) || (__int128)tiles * listed_batch(a) * fa_flex_map_heads(a) <= MAX_LIST)
    return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "flex.q_block: lists of the %lld tiles of a head need more memory than devices have",
                 (long long)tiles);
}

/* ---- forward ---- */

static const fa_kernel *portable_kernel(const fa_attention *a, const fa_kernel_device *device) {
  if (fa_flex_is_short(a)) return fa_flex_forward_find_short(a->dtype, device);
  return fa_flex_forward_find(a->dtype, a->head_dim, fa_attention_head_dim_v(a), device);
}

static void add_portable(fa_flex_builder *b, const fa_kernel *k) {
  const fa_attention *a = b->call->a;
  b->params.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  fa_attention_params *p = fa_plan_params(b->out, sizeof *p);
  *p = b->params;
  fa_launch *l = fa_plan_add(b->out, FA_ENTRY_OF(k),
                             fa_blocks_of(a->seqlen_q, k->block_m) *
                                 fa_blocks_of(fa_attention_head_dim_v(a), k->block_cols),
                             a->heads_q, a->batch, k->n_threads, k->shared_bytes, p);
  fa_flex_compile_in(b, FA_MODS_SCORE, p, NULL, l);
  l->writes = FA_WRITES_FORWARD | FA_WRITES_WORKSPACE;
}

static void add_hopper(fa_flex_builder *b, const fa_kernel *k, const fa_kernel_device *device,
                       fa_hopper_params *p) {
  p->f.flex = b->params.flex;
  p->f.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  fa_launch *l = fa_hopper_launch_forward(k, device, p, b->out);
  fa_flex_compile_in(b, FA_MODS_SCORE, &p->f, NULL, l);
  l->writes |= FA_WRITES_WORKSPACE;
}

fa_status fa_flex_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  if (a->splits > 1)
    return fa_split_supported(a, device, err); /* which says what they are not together with */
  if (portable_kernel(a, device)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "flex: every forward kernel needs more than the device's %zu bytes of shared memory",
                 device ? device->max_shared_bytes : 0);
}

fa_status fa_plan_flex_forward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                               fa_error *err) {
  const fa_attention *a = call->a;
  fa_hopper_params *p = NULL;
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_flex_forward_supported(a, device, err);
  if (status != FA_OK) return status;
  const fa_kernel *hopper = fa_hopper_flex_forward(a, device, out, &p);
  const fa_kernel *k = hopper ? hopper : portable_kernel(a, device);
  status = fa_flex_check_tiles(a, k->block_m, k->block_n, err);
  if (status != FA_OK) return status;
  out->family = FA_PLAN_FLEX;
  out->name = hopper ? "hopper_flex_forward" : "flex_forward";
  out->aligned = fa_attention_is_aligned(a);
  fa_plan_blocks(out, k->block_m, k->block_n);
  if (fa_attention_is_empty(a)) return FA_OK;
  fa_flex_builder b = fa_flex_builder_make(call, out);
  fa_flex_add_map(&b, a->flex->blocks_from_mask_mod, fa_flex_map_batch(a), fa_flex_map_heads(a));
  if (hopper)
    add_hopper(&b, k, device, p);
  else
    add_portable(&b, k);
  return FA_OK;
}

/* ---- lists of blocks ---- */

fa_status fa_plan_flex_blocks(const fa_call *call, fa_plan *out, fa_error *err) {
  fa_attention a;
  fa_flex flex;
  fa_call own = *call;
  fa_status status = fa_flex_blocks_problem(call->a, &a, &flex, err);
  if (status == FA_OK && call->lists) status = fa_flex_blocks_check(&a, call->lists, err);
  if (status != FA_OK) return status;
  const fa_flex_block_lists to = call->lists ? *call->lists : (fa_flex_block_lists){0};
  own.a = &a;
  out->family = FA_PLAN_FLEX;
  out->name = "flex_blocks";
  fa_flex_builder b = fa_flex_builder_make(&own, out);
  fa_flex_add_map(&b, true, flex.list_batch, flex.list_heads);
  fa_flex_lists_params *p = add_lists(&b, FA_FLEX_LISTS_BLOCKS, fa_flex_n_q(&a), flex.list_batch);
  p->partial = (fa_flex_block_list){to.kv_num_blocks, to.kv_indices};
  p->full = (fa_flex_block_list){to.full_kv_num_blocks, to.full_kv_indices};
  return FA_OK;
}
