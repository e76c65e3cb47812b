#include "gpu/plan/memeff.h"

#include "gpu/call/check.h"
#include "gpu/kernels/registry/memeff.h"

static int64_t blocks(int64_t n, int64_t of) {
  return (n + of - 1) / of;
}

void fa_memeff_forward_grid(const fa_attention *a, const fa_kernel *kernel, unsigned grid[3]) {
  grid[0] = (unsigned)(blocks(a->seqlen_q, kernel->block_m) *
                       blocks(fa_attention_head_dim_v(a), kernel->block_cols));
  grid[1] = (unsigned)a->heads_q;
  grid[2] = (unsigned)a->batch;
}

/* An axis of one element needs no sum. */
int fa_memeff_dbias_sums(const fa_attention *a, const fa_gradients *g) {
  return (g->dbias_stride.batch == 0 && a->batch != 1 ? FA_MEMEFF_SUM_BATCH : 0) |
         (g->dbias_stride.head == 0 && a->heads_q != 1 ? FA_MEMEFF_SUM_HEADS : 0) |
         (g->dbias_stride.row == 0 && a->seqlen_q != 1 ? FA_MEMEFF_SUM_ROWS : 0);
}

void fa_memeff_params_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p) {
  FA_FILL_GRADIENTS(p, a, g);
  p->batch = (int)a->batch;
  p->dbias = g->dbias;
  p->dbias_sums = fa_memeff_dbias_sums(a, g);
}

int64_t fa_memeff_delta_fill(const fa_attention *a, const fa_gradients *g, fa_memeff_backward_params *p) {
  const bool has_batch = !fa_attention_is_varlen(a);
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

static void add_launch(fa_backward_plan *p, const fa_memeff_kernel *k, int64_t x, int64_t y, int64_t z) {
  if (x == 0 || y == 0 || z == 0) return;
  p->launch[p->n_launches++] = (fa_backward_launch){.kernel = k->entry,
                                                    .grid = {(unsigned)x, (unsigned)y, (unsigned)z},
                                                    .n_threads = (unsigned)k->n_threads,
                                                    .shared_bytes = k->shared_bytes,
                                                    .is_memeff = true};
}

static void add_dbias_launch(const fa_attention *a, const fa_gradients *g, const fa_memeff_kernel *k,
                             fa_backward_plan *out) {
  const int sums = out->memeff.dbias_sums;
  if (!g->dbias || !sums || a->batch == 0) return;
  add_launch(out, k,
             (sums & FA_MEMEFF_SUM_ROWS ? 1 : blocks(a->seqlen_q, k->block_m)) *
                 blocks(a->seqlen_k, k->block_cols),
             sums & FA_MEMEFF_SUM_HEADS ? 1 : a->heads_q, sums & FA_MEMEFF_SUM_BATCH ? 1 : a->batch);
}

void fa_memeff_dbias_plan(const fa_attention *a, const fa_gradients *g, fa_kernel_strides delta_stride,
                        fa_backward_plan *out) {
  fa_memeff_params_fill(a, g, &out->memeff);
  out->memeff.forward.aligned = out->aligned;
  out->memeff.delta_stride = delta_stride;
  add_dbias_launch(a, g, &fa_memeff_backward_find(a->dtype)->dbias, out);
}

static int64_t widest_of(const fa_attention *a) {
  const int64_t head_dim_v = fa_attention_head_dim_v(a);
  return a->head_dim > head_dim_v ? a->head_dim : head_dim_v;
}

const fa_memeff_kernel *fa_memeff_single_pass(const fa_attention *a, const fa_kernel_device *device) {
  const fa_memeff_kernel *k = a->deterministic ? NULL : fa_memeff_single_find(a->dtype, widest_of(a));
  return k && (!device || k->shared_bytes <= device->max_shared_bytes) ? k : NULL;
}

static void add_two_passes(const fa_attention *a, const fa_memeff_backward_kernels *k, fa_backward_plan *out) {
  add_launch(out, &k->keys, blocks(a->seqlen_k, k->keys.block_m) * blocks(widest_of(a), k->keys.block_cols),
             a->heads_kv, a->batch);
  add_launch(out, &k->queries,
             blocks(a->seqlen_q, k->queries.block_m) * blocks(a->head_dim, k->queries.block_cols), a->heads_q,
             a->batch);
}

/* In the order of gpu/kernels/params/memeff_backward.h. */
void fa_memeff_backward_plan_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                fa_backward_plan *out) {
  const fa_memeff_backward_kernels *k = fa_memeff_backward_find(a->dtype);
  const fa_memeff_kernel *single = fa_memeff_single_pass(a, device);
  out->is_memeff = true;
  fa_memeff_params_fill(a, g, &out->memeff);
  out->memeff.forward.aligned = out->aligned;
  out->workspace_bytes = (size_t)fa_memeff_delta_fill(a, g, &out->memeff); /* from its beginning on */
  out->memeff.clears_dq = single != NULL;
  if (!g->delta || single)
    add_launch(out, &k->prepare, blocks(a->seqlen_q, k->prepare.block_m), a->heads_q, a->batch);
  if (single)
    add_launch(out, single, blocks(a->seqlen_k, single->block_m), a->heads_kv, a->batch);
  else
    add_two_passes(a, k, out);
  add_dbias_launch(a, g, &k->dbias, out);
  if (out->n_launches == 0) out->workspace_bytes = 0;
}
