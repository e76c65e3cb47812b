#include "gpu/plan/hopper.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/params/hopper.h"
#include "gpu/kernels/registry/select.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* What the maps and the kernels' own restrictions allow, beside their abilities. */
static bool is_possible(const fa_attention *a, const fa_kernel_device *device) {
  return device && device->hopper && !fa_attention_is_empty(a) && fa_choose_forward(a) == FA_KERNELS_FLASH &&
         a->seqlen_q > 0 && (a->seqlen_k > 0 || a->e4m3) && a->chunk == 0 && fa_attention_is_aligned(a);
}

/* These kernels have the code of 64 pairs twice: of a longer score_mod a compiler makes it in more seconds than users wait. */
#define LONGEST_SCORE 64 /* nodes */

static bool has_long_score(const fa_attention *a) {
  return fa_flex_has_score(a->flex->program) && a->flex->program->score.n > LONGEST_SCORE;
}

static bool has_lengths(const fa_attention *a) {
  return fa_attention_is_varlen(a) || a->seqused_k || a->leftpad_k;
}

/* Few rows over keys of their own lengths are decoding, where a tile of 128 rows costs eight times the products; the portable
 * kernels for short calls have tiles of as many. Of fixed lengths such calls are rare. */
#define FEW_ROWS 16
static bool has_few_rows_of_lengths(const fa_attention *a) {
  return has_lengths(a) && a->seqlen_q <= FEW_ROWS;
}

bool fa_hopper_fill_map(fa_tensor_map *map, const fa_attention *a, const void *base, int64_t head_dim,
                        const fa_hopper_axis axes[3]) {
  fa_tensor_box x = {.base = base,
                     .size = {(uint64_t)head_dim},
                     .box = {64},
                     .swizzle = FA_SWIZZLE_128,
                     .bf16 = a->dtype == FA_BF16};
  for (int i = 0; i < 3; ++i) {
    const int64_t size = axes[i].size, stride = axes[i].stride;
    if (size <= 0 || (size > 1 && (stride <= 0 || stride >= (int64_t)1 << 38))) return false;
    x.size[i + 1] = (uint64_t)size;
    x.bytes[i] = size > 1 ? (uint64_t)stride * 2 : 16;
    x.box[i + 1] = (uint32_t)axes[i].box;
  }
  _Static_assert(sizeof x <= sizeof *map, "the executor reads the box where a device has the map");
  memcpy(map, &x, sizeof x);
  return true;
}

static bool fill_map(fa_tensor_map *map, const fa_attention *a, const void *base, fa_strides s, int64_t rows,
                     int64_t heads, int64_t head_dim, int box_rows) {
  const fa_hopper_axis axes[3] = {
      {rows, s.row, box_rows}, {heads, s.head, 1}, {fa_attention_is_varlen(a) ? 1 : a->batch, s.batch, 1}};
  return fa_hopper_fill_map(map, a, base, head_dim, axes);
}

/* Tokens of q, and of k. */
static int64_t all_rows(const fa_attention *a) {
  return fa_attention_is_varlen(a) ? a->total_q : a->seqlen_q;
}
static int64_t all_keys(const fa_attention *a) {
  return fa_attention_is_varlen(a) ? a->total_k : a->seqlen_k;
}

/* ---- forward ---- */

/* Of q, k or v, or of e4m3 pairs of its columns as one of 16 bits: boxes of 64 are rows of 128 bytes either way. Without
 * keys nothing is loaded, but a map has one all the same. */
static bool fill_operand_map(fa_tensor_map *map, const fa_attention *a, const void *base, fa_strides s,
                             int64_t rows, int64_t heads, int64_t head_dim, int box_rows) {
  const int in_one = 2 / fa_attention_operand_bytes(a);
  return fill_map(map, a, rows > 0 ? base : a->q,
                  (fa_strides){s.batch / in_one, s.row / in_one, s.head / in_one}, rows > 0 ? rows : 1, heads,
                  head_dim / in_one, box_rows);
}

static bool fill_forward_maps(const fa_attention *a, const fa_kernel *k, fa_hopper_params *p) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a), rows = all_rows(a), keys = all_keys(a);
  return fill_operand_map(&p->q, a, a->q, a->q_stride, rows, a->heads_q, a->head_dim, 64) &&
         fill_operand_map(&p->k, a, a->k, a->k_stride, keys, a->heads_kv, a->head_dim, k->block_n) &&
         fill_operand_map(&p->v, a, a->v, a->v_stride, keys, a->heads_kv, head_dim_v, k->block_n) &&
         fill_map(&p->o, a, a->o, a->o_stride, rows, a->heads_q, head_dim_v, 16);
}

/* Heads whose keys and values together stay in the L2 cache while all their row blocks pass: where row blocks
 * differ in length, and the long ones are to come first. Else row blocks of one head follow one another. */
static int section_of(const fa_attention *a, int64_t heads, bool uneven) {
  const int64_t cache = (int64_t)32 << 20;
  const int64_t of_kv_head =
      a->seqlen_k * (a->head_dim + fa_attention_head_dim_v(a)) * fa_attention_operand_bytes(a);
  int64_t n = 1;
  while (uneven && 2 * n <= heads && 2 * n * of_kv_head / (a->heads_q / a->heads_kv) <= cache) n *= 2;
  return (int)n;
}

/* uneven: row blocks differ in how many keys they see. False: beyond a grid. */
static bool fill_tiles(const fa_attention *a, const fa_kernel *k, bool uneven, fa_tile_scheduler_params *t) {
  /* of the longest sequence for every one, or of all one behind the other, if those are fewer */
  const int64_t of_longest = fa_blocks_of(a->seqlen_q, k->block_m), of_all = a->total_q / k->block_m + a->batch;
  const bool packed = fa_attention_is_varlen(a) && of_all < of_longest * a->batch;
  const int64_t row_blocks = packed ? of_all : of_longest;
  const int64_t heads = packed ? a->heads_q : a->batch * a->heads_q;
  const int64_t rest = a->seqlen_q % k->block_m;
  const bool short_last = rest > 0 && rest <= k->block_m - 64;
  *t = (fa_tile_scheduler_params){.n = (int)(row_blocks * heads),
                                  .row_blocks = (int)row_blocks,
                                  .heads = (int)heads,
                                  .section = section_of(a, heads, uneven || short_last),
                                  .last_first = uneven,
                                  .sequences = packed ? (int)a->batch : 0,
                                  .counter = -1};
  return row_blocks * heads <= 1 << 30;
}

/* As linear_kept of gpu/kernels/parts/dropout_linear.cuh has it. */
static bool linear_keeps(uint32_t word, float p) {
  return fmaf((float)word, 0x1p-32f, 0x1p-33f) > p;
}

/* If there is linear dropout, rows have their keys in fours. */
static bool has_linear_fours(const fa_attention *a) {
  return a->dropout_p == 0 || a->dropout_scheme != FA_DROPOUT_LINEAR || a->seqlen_k % 4 == 0;
}

/* For gpu/kernels/hopper/linear.cuh: the least random word that keeps its pair, in dropout_limit; the largest one does, as p is
 * below 1. False: the kernels cannot do it. */
static bool fill_linear_dropout(const fa_attention *a, fa_attention_params *f) {
  if (!has_linear_fours(a)) return false;
  if (!f->dropout_linear) return true;
  uint32_t least = 0, most = UINT32_MAX;
  while (least < most) {
    const uint32_t middle = least + (most - least) / 2;
    if (linear_keeps(middle, f->dropout_p))
      most = middle;
    else
      least = middle + 1;
  }
  f->dropout_limit = least;
  return true;
}

/* False: the kernel cannot do it. */
static bool fill_forward_params(const fa_attention *a, const fa_kernel *k, bool uneven, fa_hopper_params *p) {
  fa_attention_params_fill(a, &p->f);
  p->amax = (fa_kernel_amax){a->amax_p, a->amax_o};
  return fill_linear_dropout(a, &p->f) && fill_forward_maps(a, k, p) &&
         fill_tiles(a, k, uneven || p->f.window_right >= 0, &p->tiles);
}

/* NULL, and nothing is in the plan: the kernel cannot do it. */
static fa_hopper_params *make_forward_params(const fa_attention *a, const fa_kernel *k, bool uneven,
                                             fa_plan *out) {
  if (!k) return NULL;
  fa_hopper_params *p = fa_plan_params(out, sizeof *p);
  if (fill_forward_params(a, k, uneven, p)) return p;
  fa_plan_params_drop(out, sizeof *p);
  return NULL;
}

fa_launch *fa_hopper_launch_forward(const fa_kernel *k, const fa_kernel_device *device, fa_hopper_params *p,
                                    fa_plan *out) {
  const int blocks = p->tiles.n < device->hopper ? p->tiles.n : device->hopper;
  fa_launch *l = fa_plan_add(out, FA_ENTRY_OF(k), blocks, 1, 1, k->n_threads, k->shared_bytes, p);
  l->n_maps = k->n_maps;
  l->counter = &p->tiles.counter;
  l->writes = FA_WRITES_FORWARD | (p->amax.p ? FA_WRITES_AMAX : 0);
  out->is_hopper = true;
  fa_plan_blocks(out, k->block_m, k->block_n);
  return l;
}

/* The most keys that a row sees: with larger blocks fewer of a long walk are masked, but those of a window are mostly its
 * ends, where they compute more that nobody sees. */
static int64_t most_keys_seen(const fa_attention *a) {
  const int64_t keys = a->seqlen_k, left = a->window_left, right = a->window_right;
  if (left < 0 || right < 0 || left >= keys || right >= keys - left) return keys;
  return left + right + 1;
}

/* Of a bias or its gradient. One whose rows are one row has no map: copies do not stand still along an axis of a box. */
static bool fill_bias_map(fa_tensor_map *map, const fa_attention *a, const void *bias, fa_strides s,
                          int box_rows) {
  const fa_hopper_axis axes[3] = {{a->seqlen_q, s.row, box_rows},
                                  {s.head ? a->heads_q : 1, s.head, 1},
                                  {s.batch ? a->batch : 1, s.batch, 1}};
  return fa_rows_are_aligned(a, bias, s) && fa_hopper_fill_map(map, a, bias, a->seqlen_k, axes);
}

static bool add_biased_forward(const fa_attention *a, const fa_kernel *k, const fa_kernel_device *device,
                               fa_plan *out) {
  fa_hopper_biased_params *p = fa_plan_params(out, sizeof *p);
  if (!fill_bias_map(&p->bias, a, a->bias, a->bias_stride, k->block_m) ||
      !fill_forward_params(a, k, false, &p->call)) {
    fa_plan_params_drop(out, sizeof *p);
    return false;
  }
  fa_hopper_launch_forward(k, device, &p->call, out)->params = p;
  return true;
}

static bool add_plain_forward(const fa_attention *a, const fa_kernel *k, const fa_kernel_device *device,
                              fa_plan *out) {
  fa_hopper_params *p = make_forward_params(a, k, false, out);
  if (p) fa_hopper_launch_forward(k, device, p, out);
  return p != NULL;
}

bool fa_hopper_add_forward(const fa_attention *a, const fa_kernel_device *device, fa_plan *out) {
  if (a->scale <= 0 || (a->alibi_slopes && a->mask_top_left) || !is_possible(a, device)) return false;
  const fa_kernel *k =
      fa_hopper_forward_find(fa_kernel_wanted(a, true), most_keys_seen(a), has_lengths(a), device);
  if (!k || !(a->bias ? add_biased_forward(a, k, device, out) : add_plain_forward(a, k, device, out)))
    return false;
  out->name = "hopper_forward";
  return true;
}

const fa_kernel *fa_hopper_flex_forward(const fa_attention *a, const fa_kernel_device *device, fa_plan *out,
                                        fa_hopper_params **params) {
  if (a->scale <= 0 || has_long_score(a) || has_few_rows_of_lengths(a) || !is_possible(a, device))
    return NULL;
  const fa_kernel *k = fa_hopper_flex_forward_find(fa_kernel_wanted(a, true), has_lengths(a), device);
  *params = make_forward_params(a, k, fa_flex_has_blocks(a), out);
  return *params ? k : NULL;
}

/* ---- backward ---- */

static bool fill_backward_maps(const fa_attention *a, const fa_gradients *g, const fa_kernel *k,
                               fa_hopper_backward_params *p) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a), rows = all_rows(a), keys = all_keys(a);
  const int box_rows = k->block_m / fa_hopper_backward_cluster(k), box_keys = k->block_n;
  return fill_map(&p->q, a, a->q, a->q_stride, rows, a->heads_q, a->head_dim, box_rows) &&
         fill_map(&p->k, a, a->k, a->k_stride, keys, a->heads_kv, a->head_dim, box_keys) &&
         fill_map(&p->v, a, a->v, a->v_stride, keys, a->heads_kv, head_dim_v, box_keys) &&
         fill_map(&p->d_o, a, g->d_o, g->do_stride, rows, a->heads_q, head_dim_v, box_rows) &&
         fill_map(&p->dk, a, g->dk, g->dk_stride, keys, a->heads_kv, a->head_dim, 16) &&
         fill_map(&p->dv, a, g->dv, g->dv_stride, keys, a->heads_kv, head_dim_v, 16);
}

/* The gradient of a bias is no sum, and has rows of whole chunks: bulk copies store 16 bytes, not a part of them. */
static bool has_dbias_map(const fa_call *call) {
  const fa_attention *a = call->a;
  const fa_gradients *g = call->g;
  fa_tensor_map map;
  return fa_memeff_dbias_sums(a, g) == 0 && a->seqlen_k % 8 == 0 &&
         fill_bias_map(&map, a, g->dbias, g->dbias_stride, 1);
}

/* A bias, and where it is wanted its gradient, that there are maps of, or that sums are made of in memory. */
static bool has_bias_maps(const fa_call *call) {
  const fa_attention *a = call->a;
  const fa_gradients *g = call->g;
  fa_tensor_map map;
  if (!a->bias) return !g->dbias;
  return fill_bias_map(&map, a, a->bias, a->bias_stride, 1) &&
         (!g->dbias || fa_backward_adds_dbias(a, g) || has_dbias_map(call));
}

/* All rows aligned, and nothing that these kernels do not make. */
static bool is_plain(const fa_call *call) {
  return fa_gradients_are_aligned(call->a, call->g) && has_bias_maps(call);
}

/* The other kernels of the call read the same workspace; where two head dims differ, their tiles may be wider
 * than this one's. Those in clusters ask how wide it is, and can leave half a panel out. */
static bool shares_workspace(const fa_kernel *k, const fa_fast_backward *x) {
  if (fa_hopper_backward_cluster(k) > 1) return x->kernels.head_dim >= k->ability.head_dim - 32;
  return k->ability.head_dim == x->kernels.head_dim;
}

/* NULL, and nothing is in the plan: the kernel cannot do it. */
static fa_hopper_backward_params *make_backward_params(const fa_call *call, const fa_kernel *k,
                                                       const fa_fast_backward *x, fa_plan *out) {
  fa_hopper_backward_params *p = fa_plan_params(out, sizeof *p);
  p->row_dim = x->kernels.head_dim;
  if (fill_backward_maps(call->a, call->g, k, p)) return p;
  fa_plan_params_drop(out, sizeof *p);
  return NULL;
}

/* The same with the maps of a bias before them. */
static fa_hopper_backward_params *make_biased_params(const fa_call *call, const fa_kernel *k,
                                                     const fa_fast_backward *x, fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_gradients *g = call->g;
  const bool has_gradient = x->params->dbias; /* of each pair */
  fa_hopper_biased_backward_params *p = fa_plan_params(out, sizeof *p);
  p->call.row_dim = x->kernels.head_dim;
  if (fill_backward_maps(a, g, k, &p->call) &&
      fill_bias_map(&p->bias, a, a->bias, a->bias_stride, k->block_m) &&
      fill_bias_map(&p->dbias, a, has_gradient ? g->dbias : a->bias,
                    has_gradient ? g->dbias_stride : a->bias_stride, k->block_m))
    return &p->call;
  fa_plan_params_drop(out, sizeof *p);
  return NULL;
}

/* Of either kind of kernel. *all: from their beginning on. */
static fa_hopper_backward_params *make_main_params(const fa_call *call, const fa_kernel *k,
                                                   const fa_fast_backward *x, fa_plan *out, void **all) {
  const bool biased = call->a->bias;
  fa_hopper_backward_params *p =
      biased ? make_biased_params(call, k, x, out) : make_backward_params(call, k, x, out);
  *all = p && biased ? (char *)p - offsetof(fa_hopper_biased_backward_params, call) : (char *)p;
  return p;
}

static bool takes_turns(const fa_call *call, const fa_kernel *k) {
  return call->a->deterministic && k->takes_turns;
}

/* Of how many KV heads, as a power of two, blocks, or clusters of them, are launched by turns
 * (gpu/kernels/params/flash_backward.h). Processors become free one after another, a block's steps apart in all; a block is ready
 * for its turn two steps behind the one before it. */
static int heads_by_turns(const fa_call *call, const fa_kernel *k) {
  const fa_attention *a = call->a;
  const int64_t at_a_time = fa_blocks_of(call->n_processors, fa_hopper_backward_cluster(k));
  const int64_t steps =
      a->heads_kv > 0 ? fa_blocks_of(a->seqlen_q, k->block_m) * (a->heads_q / a->heads_kv) : 0;
  int log2 = 0;
  while ((steps << log2) < 2 * at_a_time && a->heads_kv % (2 << log2) == 0 && log2 < 16) ++log2;
  return log2;
}

#define MOST_IN_SECOND_AXIS 65535 /* of a grid */

/* Blocks in the order that brings those which add to the same sums of dS side by side, along the axis that has more of them:
 * FA_GRID_.... */
static int grid_order(const fa_attention *a, const fa_backward_params *p, int64_t key_blocks) {
  const int64_t sequences = p->dbias_accum_stride.batch == 0 ? a->batch : 1,
                heads = p->dbias_accum_stride.head == 0 ? a->heads_kv : 1;
  if (!p->dbias_sums || key_blocks > MOST_IN_SECOND_AXIS) return FA_GRID_KEYS_FIRST;
  if (heads > sequences) return FA_GRID_HEADS_FIRST;
  return sequences > 1 ? FA_GRID_BATCH_FIRST : FA_GRID_KEYS_FIRST;
}

static void fill_grid(const fa_attention *a, int order, unsigned blocks, unsigned grid[3]) {
  const unsigned heads = (unsigned)a->heads_kv, batch = (unsigned)a->batch;
  const unsigned grids[][3] = {[FA_GRID_KEYS_FIRST] = {blocks, heads, batch},
                               [FA_GRID_BATCH_FIRST] = {batch, blocks, heads},
                               [FA_GRID_HEADS_FIRST] = {heads, blocks, batch}};
  memcpy(grid, grids[order], sizeof grids[order]);
}

void fa_hopper_launch_backward(const fa_call *call, const fa_kernel *k, const fa_fast_backward *x,
                               fa_hopper_backward_params *p, fa_launch *l) {
  const fa_attention *a = call->a;
  const int64_t together = fa_hopper_backward_cluster(k);
  const int64_t blocks = a->deterministic && !takes_turns(call, k)
                             ? x->params->n_splits
                             : fa_blocks_of(a->seqlen_k, together * k->block_n);
  p->b = *x->params;
  fill_linear_dropout(a, &p->b.forward);
  p->b.grid_order = grid_order(a, &p->b, blocks);
  FA_ASSERT(together == 1 || p->b.grid_order == FA_GRID_KEYS_FIRST); /* clusters are along the first axis */
  *l = (fa_launch){.kernel = FA_ENTRY_OF(k),
                   .n_threads = (unsigned)k->n_threads,
                   .shared_bytes = k->shared_bytes,
                   .cluster = (unsigned)together,
                   .n_maps = k->n_maps,
                   .params = p,
                   .writes = FA_WRITES(FA_T_DK) | FA_WRITES(FA_T_DV) | FA_WRITES_WORKSPACE |
                             (p->b.dbias ? FA_WRITES(FA_T_DBIAS) : 0)};
  fill_grid(a, p->b.grid_order, (unsigned)(blocks * together), l->grid);
}

const fa_kernel *fa_hopper_main_by_keys(const fa_call *call, const fa_kernel_device *device,
                                        const fa_fast_backward *x) {
  const fa_attention *a = call->a;
  if (!is_plain(call) || !is_possible(a, device) || !has_linear_fours(a)) return NULL;
  const fa_kernel *k =
      fa_hopper_backward_find(fa_kernel_wanted(a, true), has_lengths(a), a->deterministic, device);
  /* the kernels around it write the LSE as the call's own main kernel reads it */
  return k && shares_workspace(k, x) && k->subtracts_first == x->kernels.by_keys.subtracts_first ? k : NULL;
}

void fa_hopper_replace_main(const fa_call *call, const fa_kernel_device *device, fa_fast_backward *x,
                            fa_launch *main, fa_plan *out) {
  const fa_kernel *k = x->grids.by_queries ? NULL : fa_hopper_main_by_keys(call, device, x);
  if (!k) return;
  void *params;
  fa_hopper_backward_params *p = make_main_params(call, k, x, out, &params);
  if (!p) return;
  x->params->dbias_strips = x->params->dbias_sums != NULL;
  if (takes_turns(call, k)) {
    float *const workspace = call->workspace;
    x->params->dq_semaphore = workspace ? (unsigned *)workspace + x->grids.dq_semaphore_at : NULL;
    x->params->heads_by_turns = heads_by_turns(call, k);
    x->params->n_splits = 1;
  }
  fa_hopper_launch_backward(call, k, x, p, main);
  main->params = params;
  main->adds_in_order = takes_turns(call, k);
  out->name = "hopper_backward";
  out->is_hopper = true;
  fa_plan_blocks(out, k->block_m, k->block_n);
}

/* Of the kernel, what the flash kernels around it go by. The blocks of a cluster share an accumulator. */
static fa_kernel_main main_of(const fa_kernel *k) {
  return (fa_kernel_main){.kernel = FA_ENTRY_OF(k),
                          .block_m = k->block_m,
                          .block_n = fa_hopper_backward_cluster(k) * k->block_n,
                          .n_threads = k->n_threads,
                          .shared_bytes = k->shared_bytes,
                          .subtracts_first = 1};
}

/* Gradients of captured buffers, for which kernels in clusters have no registers. */
static bool wants_captured(const fa_gradients *g) {
  for (int k = 0; k < FA_FLEX_MAX_BUFFERS; ++k)
    if (g->dbuffer[k]) return true;
  return false;
}

/* Of two head dims the flash kernels may have no tiles as narrow as the one for the larger: then one as wide as theirs. */
static const fa_kernel *find_flex(const fa_attention *a, const fa_kernel_device *device,
                                  const fa_fast_backward *x) {
  fa_kernel_ability wanted = fa_kernel_wanted(a, true);
  const fa_kernel *k = fa_hopper_flex_backward_find(wanted, has_lengths(a), a->deterministic, device);
  if (!k || shares_workspace(k, x)) return k;
  wanted.head_dim = x->kernels.head_dim;
  k = fa_hopper_flex_backward_find(wanted, has_lengths(a), a->deterministic, device);
  return k && shares_workspace(k, x) ? k : NULL;
}

const fa_kernel *fa_hopper_flex_backward(const fa_call *call, const fa_kernel_device *device,
                                         fa_fast_backward *x, fa_plan *out,
                                         fa_hopper_backward_params **params) {
  const fa_attention *a = call->a;
  if (has_long_score(a) || !is_possible(a, device) || a->bias || a->softcap > 0 || a->alibi_slopes ||
      call->g->delta || !fa_gradients_are_aligned(a, call->g))
    return NULL;
  if (fa_fast_backward_find(a, true, device, &x->kernels, NULL) != FA_OK) return NULL;
  const fa_kernel *k = find_flex(a, device, x);
  if (!k || (fa_hopper_backward_cluster(k) > 1 && wants_captured(call->g))) return NULL;
  *params = make_backward_params(call, k, x, out);
  if (!*params) return NULL;
  x->kernels.by_keys = main_of(k);
  x->kernels.by_queries.block_m = 0; /* not by these */
  /* the executor's few are to share accumulators too; on all devices the same number */
  fa_fast_backward_prepare(call, device->hopper < 16 ? device->hopper : FA_PLAN_PROCESSORS, out, x);
  return k;
}
