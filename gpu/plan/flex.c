/* Plans of flex calls: what all have in common, forward, and lists of blocks. */
#include "gpu/plan/flex.h"

#include "gpu/call/check.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/flex_parts.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/memeff.h"
#include "gpu/kernels/registry/flex.h"
#include "gpu/kernels/registry/flex_lists.h"

#include <string.h>

#define MAX_LIST ((int64_t)1 << 38) /* entries of a tile list */

static int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

/* ---- parts ---- */

fa_flex_builder fa_flex_builder_make(const fa_attention *a, const fa_flex_functions *functions,
                                     void *workspace, fa_flex_plan *out) {
  fa_flex_builder b = {.a = a, .out = out, .workspace = workspace};
  memset(out, 0, sizeof *out);
  fa_attention_params_fill(a, &b.call);
  b.call.flex.functions = functions;
  for (int k = 0; a->flex->program && k < a->flex->program->n_buffers; ++k)
    b.call.flex.buffer[k] = a->flex->buffer[k];
  return b;
}

void *fa_flex_reserve(fa_flex_builder *b, int64_t bytes) {
  const size_t at = b->out->workspace_bytes;
  b->out->workspace_bytes += ((size_t)bytes + 255) / 256 * 256;
  return b->workspace ? b->workspace + at : NULL;
}

fa_flex_launch *fa_flex_add(fa_flex_builder *b, const fa_kernel_entry *kernel, int64_t x, int64_t y, int64_t z,
                            int n_threads, size_t shared_bytes) {
  fa_flex_launch *l = &b->out->launch[b->out->n_launches];
  l->kernel = *kernel;
  l->has_mods = !kernel->recipe.is_ahead_of_time;
  l->grid[0] = (unsigned)x;
  l->grid[1] = (unsigned)y;
  l->grid[2] = (unsigned)z;
  l->n_threads = (unsigned)n_threads;
  l->shared_bytes = shared_bytes;
  if (x > 0 && y > 0 && z > 0) ++b->out->n_launches;
  return l;
}

static fa_flex_lists_params *add_lists(fa_flex_builder *b, fa_flex_lists_kernel which, int64_t n) {
  fa_flex_launch *l = fa_flex_add(b, fa_flex_lists_find(which), blocks_of(n, FA_FLEX_LISTS_WARPS),
                                  b->map_heads, b->map_batch, FA_FLEX_LISTS_THREADS, 0);
  l->params_kind = FA_FLEX_PARAMS_LISTS;
  l->params.lists = (fa_flex_lists_params){.call = b->call, .map = b->map};
  return &l->params.lists;
}

void fa_flex_add_map(fa_flex_builder *b, bool from_mask_mod, int64_t map_batch, int64_t map_heads) {
  const fa_flex *f = b->a->flex;
  fa_flex_args *x = &b->call.flex;
  const int64_t blocks = fa_flex_n_q(b->a) * fa_flex_n_kv(b->a);
  b->map_batch = map_batch;
  b->map_heads = map_heads;
  x->q_block = (int)f->q_block;
  x->kv_block = (int)f->kv_block;
  x->n_q_blocks = (int)fa_flex_n_q(b->a);
  x->n_kv_blocks = (int)fa_flex_n_kv(b->a);
  x->map_head_stride = map_heads > 1 ? blocks : 0;
  x->map_batch_stride = map_batch > 1 ? blocks * map_heads : 0;
  if (blocks == 0) return;
  x->map = b->map = fa_flex_reserve(b, blocks * map_heads * map_batch);
  if (from_mask_mod) {
    add_lists(b, FA_FLEX_LISTS_MASK, blocks);
    return;
  }
  fa_flex_lists_params *p = add_lists(b, FA_FLEX_LISTS_MAP, x->n_q_blocks);
  p->partial = (fa_flex_block_list){(int32_t *)f->kv_num_blocks, (int32_t *)f->kv_indices}; /* only read */
  p->full = (fa_flex_block_list){(int32_t *)f->full_kv_num_blocks, (int32_t *)f->full_kv_indices};
}

fa_flex_lists fa_flex_add_tiles(fa_flex_builder *b, bool by_rows, int tile_m, int tile_n) {
  fa_flex_lists lists = {0};
  if (!fa_flex_has_blocks(b->a)) return lists;
  const int64_t rows = blocks_of(b->a->seqlen_q, tile_m), keys = blocks_of(b->a->seqlen_k, tile_n);
  const int64_t maps = b->map_batch * b->map_heads;
  lists.n = (int)(by_rows ? keys : rows);
  lists.capacity = (int)(by_rows ? rows : keys);
  lists.head_stride = b->map_heads > 1 ? lists.n : 0;
  lists.batch_stride = b->map_batch > 1 ? lists.n * b->map_heads : 0;
  int32_t *count = fa_flex_reserve(b, maps * lists.n * 4);
  int32_t *entry = fa_flex_reserve(b, maps * lists.n * lists.capacity * 4);
  fa_flex_lists_params *p = add_lists(b, FA_FLEX_LISTS_TILES, lists.n);
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
  const int64_t tiles = blocks_of(a->seqlen_q, tile_m) * blocks_of(a->seqlen_k, tile_n);
  if (!fa_flex_has_blocks(a) || (__int128)tiles * fa_flex_map_batch(a) * fa_flex_map_heads(a) <= MAX_LIST)
    return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "flex.q_block: lists of the %lld tiles of a head need more memory than devices have",
                 (long long)tiles);
}

/* ---- forward ---- */

static void add_portable_forward(fa_flex_builder *b, const fa_kernel *k) {
  const fa_kernel_entry entry = {k->name, k->entry, k->recipe};
  b->call.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  unsigned grid[3];
  fa_memeff_forward_grid(b->a, k, grid);
  fa_flex_launch *l = fa_flex_add(b, &entry, grid[0], grid[1], grid[2], k->n_threads, k->shared_bytes);
  l->params_kind = FA_FLEX_PARAMS_FORWARD;
  l->params.forward = b->call;
}

static void add_hopper_forward(fa_flex_builder *b, const fa_hopper_plan *h) {
  const fa_kernel *k = h->kernel;
  const fa_kernel_entry entry = {k->name, k->entry, k->recipe};
  b->call.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  fa_flex_launch *l = fa_flex_add(b, &entry, h->n_blocks, 1, 1, k->n_threads, k->shared_bytes);
  l->params_kind = FA_FLEX_PARAMS_HOPPER;
  l->n_maps = sizeof h->box / sizeof *h->box;
  memcpy(l->box, h->box, sizeof h->box);
  l->params.hopper = h->params;
  l->params.hopper.f.flex = b->call.flex;
  b->out->is_hopper = true;
}

static const fa_kernel *portable_kernel(const fa_attention *a, const fa_kernel_device *device) {
  return fa_flex_forward_find(a->dtype, a->head_dim, fa_attention_head_dim_v(a), device);
}

fa_status fa_flex_forward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  if (portable_kernel(a, device)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED,
                 "flex: every forward kernel needs more than the device's %zu bytes of shared memory",
                 device ? device->max_shared_bytes : 0);
}

fa_status fa_flex_forward_plan_make(const fa_attention *a, const fa_kernel_device *device,
                                    const fa_flex_functions *functions, void *workspace, fa_flex_plan *out,
                                    fa_error *err) {
  out->n_launches = 0;
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_flex_forward_supported(a, device, err);
  if (status != FA_OK) return status;
  fa_hopper_plan hopper;
  const bool is_hopper = fa_hopper_flex_make(a, device, &hopper);
  const fa_kernel *k = is_hopper ? hopper.kernel : portable_kernel(a, device);
  status = fa_flex_check_tiles(a, k->block_m, k->block_n, err);
  if (status != FA_OK) return status;
  fa_flex_builder b = fa_flex_builder_make(a, functions, workspace, out);
  b.call.aligned = out->aligned = fa_attention_is_aligned(a);
  if (fa_attention_is_empty(a)) return FA_OK;
  fa_flex_add_map(&b, a->flex->blocks_from_mask_mod, fa_flex_map_batch(a), fa_flex_map_heads(a));
  if (is_hopper)
    add_hopper_forward(&b, &hopper);
  else
    add_portable_forward(&b, k);
  return FA_OK;
}

/* ---- lists of blocks ---- */

fa_status fa_flex_blocks_plan_make(const fa_attention *a, const fa_flex_block_lists *lists,
                                   const fa_flex_functions *functions, void *workspace, fa_flex_plan *out,
                                   fa_error *err) {
  fa_attention call;
  fa_flex flex;
  out->n_launches = 0;
  fa_status status = fa_flex_blocks_problem(a, &call, &flex, err);
  if (status == FA_OK && lists) status = fa_flex_blocks_check(&call, lists, err);
  if (status != FA_OK) return status;
  const fa_flex_block_lists to = lists ? *lists : (fa_flex_block_lists){0};
  fa_flex_builder b = fa_flex_builder_make(&call, functions, workspace, out);
  fa_flex_add_map(&b, true, flex.list_batch, flex.list_heads);
  fa_flex_lists_params *p = add_lists(&b, FA_FLEX_LISTS_BLOCKS, fa_flex_n_q(&call));
  p->partial = (fa_flex_block_list){to.kv_num_blocks, to.kv_indices};
  p->full = (fa_flex_block_list){to.full_kv_num_blocks, to.full_kv_indices};
  return FA_OK;
}
