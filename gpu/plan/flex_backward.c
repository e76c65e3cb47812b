/* Backward calls with expressions or block lists. */
#include "gpu/call/check.h"
#include "gpu/expr/program.h"
#include "gpu/kernels/params/flex.h"
#include "gpu/kernels/registry/select.h"
#include "gpu/plan/flex_parts.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/memeff.h"

#include <string.h>

fa_status fa_flex_backward_supported(const fa_attention *a, fa_error *err) {
  if (fa_flex_backward_find(a->dtype)) return FA_OK;
  return fa_fail(err, FA_ERR_UNSUPPORTED, "flex: there are no backward kernels for %s",
                 fa_dtype_name(a->dtype));
}

/* ---- gradients of buffers ---- */

static fa_writes writes_buffers(void) {
  return FA_WRITES(FA_T_DBUFFER_LAST + 1) - FA_WRITES(FA_T_DBUFFER_0);
}

static unsigned char stored_as(fa_dtype dtype) {
  return dtype == FA_F16 ? FA_FLEX_AS_F16 : dtype == FA_BF16 ? FA_FLEX_AS_BF16 : FA_FLEX_AS_F32;
}

/* Where they are added to, and what becomes of the sums: *x. Those of 16 bits are added up in the workspace. Returns the
 * elements of the longest, 0: none is wanted. */
static int64_t place_buffers(fa_flex_builder *b, const fa_gradients *g, fa_flex_exact_params *x) {
  const fa_attention *a = b->call->a;
  int64_t longest = 0;
  memset(x, 0, sizeof *x);
  for (int k = 0; k < FA_FLEX_MAX_BUFFERS; ++k) {
    if (!g->dbuffer[k]) continue;
    const fa_capture *c = &a->flex->program->buffer[k];
    x->out[k] = g->dbuffer[k];
    x->stored[k] = stored_as(c->dtype);
    x->n[k] = fa_flex_captured_count(c);
    if (a->deterministic)
      x->exact[k] = fa_flex_reserve(b, x->n[k] * FA_FLEX_EXACT_WORDS * 8);
    else if (x->stored[k] == FA_FLEX_AS_F32)
      x->dbuffer[k] = g->dbuffer[k];
    else
      x->dbuffer[k] = fa_flex_reserve(b, x->n[k] * (int64_t)sizeof(float));
    if (x->n[k] > longest) longest = x->n[k];
  }
  memcpy(b->params.flex.dbuffer, x->dbuffer, sizeof x->dbuffer);
  memcpy(b->params.flex.exact, x->exact, sizeof x->exact);
  return longest;
}

static bool rounds(const fa_flex_exact_params *x) {
  for (int k = 0; k < FA_FLEX_MAX_BUFFERS; ++k)
    if (x->exact[k] || x->stored[k] != FA_FLEX_AS_F32) return true;
  return false;
}

static void add_exact(fa_flex_builder *b, const fa_memeff_kernel *k, int64_t longest,
                      fa_flex_exact_params *x) {
  fa_plan_add(b->out, k->entry, fa_blocks_of(longest, FA_FLEX_EXACT_ELEMENTS),
              b->call->a->flex->program ? b->call->a->flex->program->n_buffers : 0, 1, k->n_threads,
              k->shared_bytes, x)
      ->writes = writes_buffers() | FA_WRITES_WORKSPACE;
}

/* ---- the portable kernels ---- */

static void add_memeff(fa_flex_builder *b, const fa_memeff_kernel *k, const int64_t grid[3],
                       fa_memeff_backward_params *p) {
  fa_launch *l = fa_plan_add(b->out, k->entry, grid[0], grid[1], grid[2], k->n_threads, k->shared_bytes, p);
  if (!k->entry.recipe.is_ahead_of_time)
    fa_flex_compile_in(b, FA_MODS_DERIVATIVE, &p->forward, p->dbias_sums ? NULL : p->dbias, l);
  l->writes = writes_buffers() | FA_WRITES_GRADIENTS;
}

/* In the order of gpu/kernels/params/memeff_backward.h. */
static void add_portable(fa_flex_builder *b, const fa_flex_backward_kernels *k,
                         fa_memeff_backward_params *p) {
  const fa_attention *a = b->call->a;
  int64_t grid[3] = {fa_blocks_of(a->seqlen_q, k->prepare.block_m), a->heads_q, a->batch};
  if (p->makes_delta || p->clears_dbias) add_memeff(b, &k->prepare, grid, p);
  fa_memeff_grid_keys(a, &k->keys, grid);
  add_memeff(b, &k->keys, grid, p);
  fa_memeff_grid_queries(a, &k->queries, grid);
  add_memeff(b, &k->queries, grid, p);
  fa_memeff_grid_dbias(a, b->call->g, &k->dbias, grid);
  add_memeff(b, &k->dbias, grid, p);
}

static void plan_portable(fa_flex_builder *b, const fa_flex_backward_kernels *k) {
  b->params.flex.keys = fa_flex_add_tiles(b, false, k->block_m, k->block_n);
  b->params.flex.rows = fa_flex_add_tiles(b, true, k->block_n, k->block_m); /* transposed: of block_m keys */
  fa_memeff_backward_params *p = fa_plan_params(b->out, sizeof *p);
  fa_memeff_params_fill(b->call->a, b->call->g, p);
  p->forward = b->params;
  const int64_t delta = fa_memeff_delta_fill(b->call->a, b->call->g, p);
  if (delta) p->delta = fa_flex_reserve(b, delta);
  add_portable(b, k, p);
  fa_memeff_add_dsinks(b->call, p->delta, p->delta_stride, 0, b->out);
}

/* ---- those for sm_90a ---- */

static void add_rows(fa_flex_builder *b, const fa_fast_backward *x, const fa_kernel_entry *k) {
  const unsigned *grid = x->grids.rows_grid;
  fa_plan_add(b->out, *k, grid[0], grid[1], grid[2], FA_BACKWARD_THREADS, 0, x->params)->writes =
      writes_buffers() | FA_WRITES_GRADIENTS;
}

/* Between the flash kernels around it. */
static void plan_hopper(fa_flex_builder *b, const fa_kernel *k, fa_fast_backward *x,
                        fa_hopper_backward_params *p) {
  b->params.flex.rows = fa_flex_add_tiles(b, true, k->block_m, fa_hopper_backward_cluster(k) * k->block_n);
  fa_fast_backward_place(x, fa_flex_reserve(b, x->n_floats * (int64_t)sizeof(float)));
  x->params->forward.flex = b->params.flex;
  add_rows(b, x, &x->kernels.prepare);
  fa_launch *main = fa_plan_add(b->out, FA_ENTRY_OF(k), 1, 1, 1, 0, 0, p);
  fa_hopper_launch_backward(b->call, k, x, p, main);
  fa_flex_compile_in(b, FA_MODS_DERIVATIVE, &p->b.forward, NULL, main);
  main->writes = writes_buffers() | FA_WRITES_GRADIENTS;
  add_rows(b, x, &x->kernels.convert);
  fa_fast_backward_add_dsinks(b->call, x, b->out);
  b->out->is_hopper = true;
}

static fa_status check(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_gradients_check(a, g, err);
  return status == FA_OK ? fa_flex_backward_supported(a, err) : status;
}

/* Those with small tiles have registers left for dropout; the others would spill. */
static const fa_flex_backward_kernels *find_portable(const fa_attention *a) {
  return fa_flex_is_short(a) || a->dropout_p > 0 ? fa_flex_backward_find_short(a->dtype)
                                                 : fa_flex_backward_find(a->dtype);
}

fa_status fa_plan_flex_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                                fa_error *err) {
  const fa_attention *a = call->a;
  fa_fast_backward around;
  fa_hopper_backward_params *p = NULL;
  fa_status status = check(a, call->g, err);
  if (status != FA_OK) return status;
  out->aligned = fa_gradients_are_aligned(a, call->g);
  const fa_flex_backward_kernels *k = find_portable(a);
  const fa_kernel *hopper = fa_hopper_flex_backward(call, device, &around, out, &p);
  const int m = hopper ? hopper->block_m : k->block_m, n = hopper ? hopper->block_n : k->block_n;
  status = fa_flex_check_tiles(a, m < n ? m : n, m < n ? m : n, err);
  if (status != FA_OK) return status;
  out->family = FA_PLAN_FLEX;
  out->name = hopper ? "hopper_flex_backward" : "flex_backward";
  fa_plan_blocks(out, m, n);
  fa_flex_exact_params *buffers = fa_plan_params(out, sizeof *buffers);
  fa_flex_builder b = fa_flex_builder_make(call, out);
  const int64_t longest = place_buffers(&b, call->g, buffers);
  add_exact(&b, &k->clear, longest, buffers);
  fa_flex_add_map(&b, a->flex->blocks_from_mask_mod, fa_flex_map_batch(a), fa_flex_map_heads(a));
  if (hopper)
    plan_hopper(&b, hopper, &around, p);
  else
    plan_portable(&b, k);
  if (rounds(buffers)) add_exact(&b, &k->round, longest, buffers);
  if (out->n_launches == 0) out->workspace_bytes = 0;
  return FA_OK;
}
