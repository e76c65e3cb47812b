/* Plans of backward calls with expressions or block lists. */
#include "gpu/call/check.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/flex_parts.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/memeff.h"
#include "gpu/kernels/params/flex_exact.h"
#include "gpu/kernels/registry/flex.h"

#include <string.h>

static int64_t blocks_of(int64_t n, int64_t size) {
  return (n + size - 1) / size;
}

fa_status fa_flex_backward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  (void)device;
  if (fa_flex_backward_find(a->dtype)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "flex: there are no backward kernels for %s",
                 fa_dtype_name(a->dtype));
}

static bool all_aligned(const fa_attention *a, const fa_gradients *g) {
  return fa_attention_is_aligned(a) && fa_rows_are_aligned(a, g->d_o, g->do_stride) &&
         fa_rows_are_aligned(a, g->dq, g->dq_stride) && fa_rows_are_aligned(a, g->dk, g->dk_stride) &&
         fa_rows_are_aligned(a, g->dv, g->dv_stride);
}

static int64_t widest_of(const fa_attention *a) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  return a->head_dim > head_dim_v ? a->head_dim : head_dim_v;
}

/* ---- gradients of buffers ---- */

/* Where they are added to; of *x, dbuffer and exact. Returns the elements of the longest, 0: none is wanted.
 */
static int64_t place_buffers(fa_flex_builder *b, const fa_gradients *g, fa_flex_exact_params *x) {
  int64_t longest = 0;
  memset(x, 0, sizeof *x);
  for (int k = 0; k < FA_FLEX_MAX_BUFFERS; ++k) {
    if (!g->dbuffer[k]) continue;
    b->out->wanted[k] = true;
    x->dbuffer[k] = g->dbuffer[k];
    x->n[k] = fa_flex_captured_count(&b->a->flex->program->buffer[k]);
    if (b->a->deterministic) x->exact[k] = fa_flex_reserve(b, x->n[k] * FA_FLEX_EXACT_WORDS * 8);
    if (x->n[k] > longest) longest = x->n[k];
  }
  memcpy(b->call.flex.dbuffer, x->dbuffer, sizeof x->dbuffer);
  memcpy(b->call.flex.exact, x->exact, sizeof x->exact);
  return longest;
}

static void add_exact(fa_flex_builder *b, const fa_memeff_kernel *k, int64_t longest,
                      const fa_flex_exact_params *x) {
  fa_flex_launch *l = fa_flex_add(b, &k->entry, blocks_of(longest, FA_FLEX_EXACT_ELEMENTS), FA_FLEX_CAPTURED,
                                  1, k->n_threads, k->shared_bytes);
  l->params_kind = FA_FLEX_PARAMS_EXACT;
  l->params.exact = *x;
}

/* ---- the portable kernels ---- */

static void add_memeff(fa_flex_builder *b, const fa_memeff_kernel *k, const fa_memeff_backward_params *p, int64_t x,
                     int64_t y, int64_t z) {
  fa_flex_launch *l = fa_flex_add(b, &k->entry, x, y, z, k->n_threads, k->shared_bytes);
  l->params_kind = FA_FLEX_PARAMS_BACKWARD;
  l->has_slope = l->has_mods;
  l->params.backward = *p;
}

/* In the order of gpu/kernels/params/memeff_backward.h. */
static void add_portable(fa_flex_builder *b, const fa_gradients *g, const fa_flex_backward_kernels *k,
                         fa_memeff_backward_params *p) {
  const fa_attention *a = b->a;
  const fa_memeff_kernel *keys = &k->keys, *queries = &k->queries, *dbias = &k->dbias;
  if (p->makes_delta)
    add_memeff(b, &k->prepare, p, blocks_of(a->seqlen_q, k->prepare.block_m), a->heads_q, a->batch);
  add_memeff(b, keys, p, blocks_of(a->seqlen_k, keys->block_m) * blocks_of(widest_of(a), keys->block_cols),
           a->heads_kv, a->batch);
  add_memeff(b, queries, p,
           blocks_of(a->seqlen_q, queries->block_m) * blocks_of(a->head_dim, queries->block_cols), a->heads_q,
           a->batch);
  const int sums = p->dbias_sums;
  if (!g->dbias || !sums || a->batch == 0) return;
  add_memeff(b, dbias, p,
           (sums & FA_MEMEFF_SUM_ROWS ? 1 : blocks_of(a->seqlen_q, dbias->block_m)) *
               blocks_of(a->seqlen_k, dbias->block_cols),
           sums & FA_MEMEFF_SUM_HEADS ? 1 : a->heads_q, sums & FA_MEMEFF_SUM_BATCH ? 1 : a->batch);
}

static void plan_portable(fa_flex_builder *b, const fa_gradients *g, const fa_flex_backward_kernels *k) {
  b->call.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  b->call.flex.rows = fa_flex_add_tiles(b, true, k->block_n, k->block_m); /* transposed: of block_m keys */
  fa_memeff_backward_params p = {0};
  fa_memeff_params_fill(b->a, g, &p);
  p.forward = b->call;
  const int64_t delta = fa_memeff_delta_fill(b->a, g, &p);
  if (delta) p.delta = fa_flex_reserve(b, delta);
  add_portable(b, g, k, &p);
}

/* ---- those for sm_90a ---- */

/* Between the fast kernels' around it. */
static void add_hopper(fa_flex_builder *b, fa_backward_plan *around, const fa_hopper_backward_plan *h) {
  const fa_kernel *k = h->kernel;
  b->call.flex.rows = fa_flex_add_tiles(b, true, k->block_m, k->block_n);
  void *const workspace = fa_flex_reserve(b, (int64_t)around->workspace_bytes);
  if (workspace) fa_backward_plan_place(around, workspace);
  around->params.forward.flex = b->call.flex;
  for (int i = 0; i < around->n_launches; ++i) {
    const fa_backward_launch *of = &around->launch[i];
    const bool is_main = i == FA_HOPPER_BACKWARD_LAUNCH;
    const unsigned *grid = is_main ? h->grid : of->grid;
    fa_flex_launch *l =
        fa_flex_add(b, &of->kernel, grid[0], grid[1], grid[2], (int)of->n_threads, of->shared_bytes);
    if (!is_main) {
      l->params_kind = FA_FLEX_PARAMS_FLASH_BACKWARD;
      l->params.flash_backward = around->params;
      continue;
    }
    l->params_kind = FA_FLEX_PARAMS_HOPPER_BACKWARD;
    l->has_slope = l->has_mods;
    l->n_maps = FA_HOPPER_BACKWARD_MAPS;
    memcpy(l->box, h->box, sizeof h->box);
    l->params.hopper_backward = h->params;
    l->params.hopper_backward.b = around->params;
  }
  b->out->is_hopper = true;
}

static fa_status check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_gradients_check(a, g, err);
  return status == FA_OK ? fa_flex_backward_supported(a, NULL, err) : status;
}

static const fa_flex_backward_kernels *find_portable(const fa_attention *a) {
  const bool is_short = a->seqlen_q <= FA_FLEX_SHORT && a->seqlen_k <= FA_FLEX_SHORT;
  return is_short ? fa_flex_backward_find_short(a->dtype) : fa_flex_backward_find(a->dtype);
}

fa_status fa_flex_backward_plan_make(const fa_attention *a, const fa_gradients *g,
                                     const fa_kernel_device *device, const fa_flex_functions *functions,
                                     void *workspace, fa_flex_plan *out, fa_error *err) {
  out->n_launches = 0;
  fa_status status = check(a, g, err);
  if (status != FA_OK) return status;
  const fa_flex_backward_kernels *k = find_portable(a);
  fa_backward_plan around;
  fa_hopper_backward_plan hopper;
  const bool is_hopper = fa_hopper_flex_backward_make(a, g, device, &around, &hopper);
  const int m = is_hopper ? hopper.kernel->block_m : k->block_m,
            n = is_hopper ? hopper.kernel->block_n : k->block_n;
  status = fa_flex_check_tiles(a, m < n ? m : n, m < n ? m : n, err);
  if (status != FA_OK) return status;
  fa_flex_exact_params buffers;
  fa_flex_builder b = fa_flex_builder_make(a, functions, workspace, out);
  b.call.aligned = out->aligned = all_aligned(a, g);
  const int64_t longest = place_buffers(&b, g, &buffers);
  add_exact(&b, &k->clear, longest, &buffers);
  fa_flex_add_map(&b, a->flex->blocks_from_mask_mod, fa_flex_map_batch(a), fa_flex_map_heads(a));
  if (is_hopper)
    add_hopper(&b, &around, &hopper);
  else
    plan_portable(&b, g, k);
  if (a->deterministic) add_exact(&b, &k->round, longest, &buffers);
  if (out->n_launches == 0) out->workspace_bytes = 0;
  return FA_OK;
}
