#include "gpu/plan/memeff.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"

#include <string.h>

/* ---- parameters ---- */

void fa_memeff_params_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p) {
  memset(p, 0, sizeof *p);
  FA_FILL_GRADIENTS(p, a, g);
  p->batch = (int)a->batch;
  p->dbias = g->dbias;
  p->dbias_sums = fa_memeff_dbias_sums(a, g);
  p->clears_dbias = g->dbias && !p->dbias_sums && fa_attention_is_varlen(a);
  p->dsinks = g->dsinks;
}

int64_t fa_memeff_delta_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p) {
  const bool has_batch = fa_attention_has_lse_batch(a);
  const int64_t rows = has_batch ? a->seqlen_q : a->total_q;
  p->makes_delta = !g->delta;
  if (g->delta) {
    p->delta = (float *)g->delta; /* and nobody writes it */
    p->delta_stride = fa_kernel_strides_of(g->delta_stride, has_batch);
    return 0;
  }
  p->delta_stride = (fa_kernel_strides){has_batch ? a->heads_q * rows : 0, 1, rows};
  return (has_batch ? a->batch : 1) * a->heads_q * rows * (int64_t)sizeof(float);
}

/* ---- launches ---- */

static void set_grid(int64_t grid[3], int64_t x, int64_t y, int64_t z) {
  grid[0] = x;
  grid[1] = y;
  grid[2] = z;
}

void fa_memeff_grid_keys(const fa_attention *a, const fa_memeff_kernel *k, int64_t grid[3]) {
  set_grid(grid, fa_blocks_of(a->seqlen_k, k->block_m) * fa_blocks_of(fa_attention_widest(a), k->block_cols),
           a->heads_kv, a->batch);
}

void fa_memeff_grid_queries(const fa_attention *a, const fa_memeff_kernel *k, int64_t grid[3]) {
  set_grid(grid, fa_blocks_of(a->seqlen_q, k->block_m) * fa_blocks_of(a->head_dim, k->block_cols), a->heads_q,
           a->batch);
}

void fa_memeff_grid_dbias(const fa_attention *a, const fa_gradients *g, const fa_memeff_kernel *k,
                          int64_t grid[3]) {
  const int sums = fa_memeff_dbias_sums(a, g);
  set_grid(grid, 0, 0, 0);
  if (!g->dbias || !sums || a->batch == 0) return;
  set_grid(grid,
           (sums & FA_MEMEFF_SUM_ROWS ? 1 : fa_blocks_of(a->seqlen_q, k->block_m)) *
               fa_blocks_of(a->seqlen_k, k->block_cols),
           sums & FA_MEMEFF_SUM_HEADS ? 1 : a->heads_q, sums & FA_MEMEFF_SUM_BATCH ? 1 : a->batch);
}

static void add(fa_plan *out, const fa_memeff_kernel *k, const int64_t grid[3],
                fa_memeff_backward_params *p) {
  fa_plan_add(out, k->entry, grid[0], grid[1], grid[2], k->n_threads, k->shared_bytes, p)->writes =
      FA_WRITES_GRADIENTS;
}

void fa_memeff_add_dbias(const fa_call *call, float *delta, fa_kernel_strides delta_stride, fa_plan *out) {
  const fa_memeff_kernel *k = &fa_memeff_backward_find(call->a->dtype)->dbias;
  fa_memeff_backward_params *p = fa_plan_params(out, sizeof *p);
  int64_t grid[3];
  fa_memeff_params_fill(call->a, call->g, p);
  p->forward.aligned = out->aligned;
  p->delta = delta;
  p->delta_stride = delta_stride;
  fa_memeff_grid_dbias(call->a, call->g, k, grid);
  add(out, k, grid, p);
}

void fa_memeff_add_dsinks(const fa_call *call, float *delta, fa_kernel_strides delta_stride, int delta_block,
                          fa_plan *out) {
  if (!call->g->dsinks) return;
  const fa_memeff_kernel *k = &fa_memeff_backward_find(call->a->dtype)->dsinks;
  fa_memeff_backward_params *p = fa_plan_params(out, sizeof *p);
  fa_memeff_params_fill(call->a, call->g, p);
  p->delta = delta;
  p->delta_stride = delta_stride;
  p->delta_block = delta_block;
  add(out, k, (int64_t[]){call->a->heads_q, 1, 1}, p);
}

/* One of f32 for sm_90a, if there is one for the call: it takes its parameters and its grid as the portable one does. */
static bool find_tf32(const fa_attention *a, const fa_kernel_device *device, fa_plan *out,
                      fa_memeff_kernel *x) {
  if (a->dtype != FA_F32 || fa_attention_is_empty(a)) return false;
  const fa_kernel *k =
      fa_hopper_tf32_backward_find(fa_kernel_wanted(a, out->aligned), a->deterministic, device);
  if (!k) return false;
  *x = (fa_memeff_kernel){FA_ENTRY_OF(k), k->block_m, k->block_cols, k->n_threads, k->shared_bytes};
  out->name = "hopper_backward";
  out->is_hopper = true;
  return true;
}

/* The kernel that makes all gradients in one pass. False: there is none for this call and device. */
static bool find_single(const fa_attention *a, const fa_kernel_device *device, fa_plan *out,
                        fa_memeff_kernel *x) {
  if (find_tf32(a, device, out, x)) return true;
  const fa_memeff_kernel *k =
      a->deterministic ? NULL : fa_memeff_single_find(a->dtype, fa_attention_widest(a));
  if (!k || (device && k->shared_bytes > device->max_shared_bytes)) return false;
  *x = *k;
  return true;
}

static void add_passes(const fa_attention *a, const fa_memeff_backward_kernels *k,
                       const fa_memeff_kernel *single, fa_memeff_backward_params *p, fa_plan *out) {
  int64_t grid[3];
  if (single) {
    add(out, single, (int64_t[]){fa_blocks_of(a->seqlen_k, single->block_m), a->heads_kv, a->batch}, p);
    return;
  }
  fa_memeff_grid_keys(a, &k->keys, grid);
  add(out, &k->keys, grid, p);
  fa_memeff_grid_queries(a, &k->queries, grid);
  add(out, &k->queries, grid, p);
}

/* In the order of gpu/kernels/params/memeff_backward.h. */
void fa_memeff_plan_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out) {
  const fa_attention *a = call->a;
  const fa_memeff_backward_kernels *k = fa_memeff_backward_find(a->dtype);
  fa_memeff_kernel found;
  fa_memeff_backward_params *p = fa_plan_params(out, sizeof *p);
  int64_t grid[3];
  out->family = FA_PLAN_MEMEFF;
  out->name = "memeff_backward";
  const fa_memeff_kernel *single = find_single(a, device, out, &found) ? &found : NULL;
  out->adds_dq = single != NULL;
  fa_memeff_params_fill(a, call->g, p);
  p->forward.aligned = out->aligned;
  p->clears_dq = single != NULL;
  out->workspace_bytes = (size_t)fa_memeff_delta_fill(a, call->g, p); /* from its beginning on */
  if (!p->delta) p->delta = call->workspace;
  if (p->makes_delta || p->clears_dbias || single)
    add(out, &k->prepare, (int64_t[]){fa_blocks_of(a->seqlen_q, k->prepare.block_m), a->heads_q, a->batch},
        p);
  add_passes(a, k, single, p, out);
  fa_memeff_grid_dbias(a, call->g, &k->dbias, grid);
  add(out, &k->dbias, grid, p);
  fa_memeff_add_dsinks(call, p->delta, p->delta_stride, 0, out);
  if (out->n_launches == 0) out->workspace_bytes = 0;
}
