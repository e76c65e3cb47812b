/* Backward calls: the flash kernels, of which the main one may be for sm_90a, and the memeff kernels. */
#include "gpu/plan/fast_backward.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/plan/hopper.h"
#include "gpu/plan/memeff.h"

#include <string.h>

fa_status fa_fast_backward_find(const fa_attention *a, bool aligned, const fa_kernel_device *device,
                                fa_flash_backward_kernels *out, fa_error *err) {
  const fa_kernel_ability wanted = fa_kernel_wanted(a, aligned);
  if (fa_flash_backward_find(wanted, device, out)) return FA_OK;
  if (device && fa_flash_backward_find(wanted, NULL, out))
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "head_dim = %lld: every backward kernel for it needs more than the device's %zu bytes of "
                   "shared memory",
                   (long long)a->head_dim, device->max_shared_bytes);
  return fa_fail(err, FA_ERR_UNSUPPORTED, "head_dim = %lld: no backward kernel was built for it",
                 (long long)a->head_dim);
}

fa_status fa_backward_supported(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                fa_error *err) {
  fa_flash_backward_kernels kernels;
  if (a->e4m3) return fa_eight_refuse(a, "there is no backward pass", err);
  if (fa_choose_backward(a, g) == FA_KERNELS_MEMEFF) return fa_choose_check(a, g, err);
  return fa_fast_backward_find(a, true, device, &kernels, err);
}

/* ---- parameters ---- */

static void fill_params(const fa_attention *a, const fa_gradients *g, const fa_backward_grids *grids,
                        bool subtracts_first, fa_backward_params *p) {
  memset(p, 0, sizeof *p);
  FA_FILL_GRADIENTS(p, a, g);
  p->scale_log2 = (float)(a->scale * 1.4426950408889634);
  p->inverse_softcap = a->softcap > 0 ? (float)(1.0 / a->softcap) : 0.0f;
  p->softcap_log2 = (float)(a->softcap * 1.4426950408889634);
  p->lse_factor = subtracts_first ? 1.0f : 1.44269504f;
  if (g->dbias && !fa_memeff_dbias_sums(a, g)) {
    p->dbias = (uint16_t *)g->dbias;
    p->dbias_aligned = fa_bias_is_aligned(a, g->dbias, g->dbias_stride);
  }
  p->rows = grids->rows;
  p->keys = grids->keys;
  p->split_stride = grids->split_stride;
  p->n_splits = grids->n_splits;
  p->deterministic = a->deterministic;
}

/* Sums of dbias whose parts are added in memory: the parameters. Returns the floats that they take. */
static int64_t fill_dbias_sums(const fa_attention *a, const fa_gradients *g, fa_backward_params *p) {
  const int sums = fa_memeff_dbias_sums(a, g);
  if (!g->dbias || a->batch == 0 || !fa_backward_adds_dbias(a, g)) return 0;
  const int64_t tile = FA_DBIAS_PADDED, keys = fa_backward_round_up(a->seqlen_k, tile);
  const int64_t floats = fa_backward_round_up(a->seqlen_q, tile) * keys; /* of a head */
  const int64_t heads = sums & FA_MEMEFF_SUM_HEADS ? 1 : a->heads_q;
  const int64_t batch = sums & FA_MEMEFF_SUM_BATCH ? 1 : a->batch;
  p->dbias_sums = (uint16_t *)g->dbias;
  p->dbias_aligned = fa_bias_is_aligned(a, g->dbias, g->dbias_stride);
  p->dbias_accum_stride =
      (fa_kernel_strides){batch > 1 ? heads * floats : 0, 16 * keys, heads > 1 ? floats : 0};
  p->dbias_floats = batch * heads * floats;
  return p->dbias_floats;
}

static fa_backward_grids plan_grids(const fa_call *call, const fa_flash_backward_kernels *kernels,
                                    int n_processors) {
  const fa_attention *a = call->a;
  const bool varlen = fa_attention_is_varlen(a);
  const fa_backward_sizes sizes = {.batch = a->batch,
                                   .heads_q = a->heads_q,
                                   .heads_kv = a->heads_kv,
                                   .seqlen_q = a->seqlen_q,
                                   .seqlen_k = a->seqlen_k,
                                   .total_q = varlen ? a->total_q : -1,
                                   .total_k = varlen ? a->total_k : -1,
                                   .head_dim = kernels->head_dim,
                                   .block_n = kernels->by_keys.block_n,
                                   .block_m = kernels->by_queries.block_m,
                                   .n_processors = n_processors,
                                   .deterministic = a->deterministic,
                                   .n_splits = (int)call->g->num_splits_key};
  return fa_backward_grids_make(&sizes);
}

void fa_fast_backward_prepare(const fa_call *call, int n_processors, fa_plan *out, fa_fast_backward *x) {
  x->params = fa_plan_params(out, sizeof *x->params);
  x->grids = plan_grids(call, &x->kernels, n_processors);
  fill_params(call->a, call->g, &x->grids, x->kernels.by_keys.subtracts_first, x->params);
  x->params->forward.aligned = out->aligned;
  x->dbias_at = fa_backward_round_up(x->grids.n_floats, 64);
  const int64_t sums = fill_dbias_sums(call->a, call->g, x->params);
  x->n_floats = sums ? x->dbias_at + sums : x->grids.n_floats;
}

static float *floats_at(void *workspace, int64_t n) {
  return workspace ? (float *)workspace + n : NULL;
}

void fa_fast_backward_place(fa_fast_backward *x, void *workspace) {
  fa_backward_params *p = x->params;
  const fa_backward_grids *g = &x->grids;
  p->lse_log2 = workspace;
  p->delta = floats_at(workspace, g->delta_at);
  if (p->dbias_floats)
    p->dbias_accum = floats_at(workspace, x->dbias_at); /* none where the bias has no pairs */
  if (g->by_queries) {
    p->dk_accum = floats_at(workspace, g->accum_at[0]);
    p->dv_accum = floats_at(workspace, g->accum_at[1]);
  } else {
    p->dq_accum = floats_at(workspace, g->accum_at[0]);
  }
}

/* ---- launches ---- */

static void add_rows(const fa_fast_backward *x, const fa_kernel_entry *k, const unsigned grid[3],
                     fa_plan *out) {
  fa_plan_add(out, *k, grid[0], grid[1], grid[2], FA_BACKWARD_THREADS, 0, x->params)->writes =
      FA_WRITES_GRADIENTS;
}

static fa_launch *add_main(const fa_fast_backward *x, fa_plan *out) {
  const fa_kernel_main *k = x->grids.by_queries ? &x->kernels.by_queries : &x->kernels.by_keys;
  const unsigned *grid = x->grids.main_grid;
  fa_launch *l =
      fa_plan_add(out, k->kernel, grid[0], grid[1], grid[2], k->n_threads, k->shared_bytes, x->params);
  l->writes = FA_WRITES_GRADIENTS;
  fa_plan_blocks(out, k->block_m, k->block_n);
  out->adds_dkv = x->grids.by_queries;
  return l;
}

/* In the order of gpu/kernels/params/flash_backward_grids.h. */
static void add_launches(const fa_call *call, const fa_kernel_device *device, fa_fast_backward *x,
                         fa_plan *out) {
  const fa_flash_backward_kernels *k = &x->kernels;
  const fa_backward_params *p = x->params;
  const fa_kernel_strides sum = p->dbias_accum_stride;
  add_rows(x, x->grids.by_queries ? &k->prepare_only : &k->prepare, x->grids.rows_grid, out);
  if (x->grids.by_queries) add_rows(x, &k->clear, x->grids.clear_grid, out);
  if (p->dbias_sums)
    add_rows(x, &k->dbias_clear,
             (unsigned[]){(unsigned)fa_backward_blocks(p->dbias_floats, FA_DBIAS_CLEARED), 1, 1}, out);
  fa_hopper_replace_main(call, device, x, add_main(x, out), out);
  if (x->grids.by_queries)
    add_rows(x, &k->convert_keys, x->grids.convert_keys_grid, out);
  else
    add_rows(x, &k->convert, x->grids.rows_grid, out);
  if (p->dbias_sums)
    add_rows(x, &k->dbias_convert,
             (unsigned[]){(unsigned)fa_backward_blocks(call->a->seqlen_q, 16),
                          sum.head ? (unsigned)call->a->heads_q : 1,
                          sum.batch ? (unsigned)call->a->batch : 1},
             out);
}

/* A gradient of the bias that these kernels do not make. */
static void add_dbias(const fa_call *call, const fa_fast_backward *x, fa_plan *out) {
  const fa_attention *a = call->a;
  if (!call->g->dbias || x->params->dbias || x->params->dbias_sums) return;
  const int64_t padded = fa_backward_round_up(a->seqlen_q, fa_backward_row_block(x->kernels.head_dim));
  fa_memeff_add_dbias(call, x->params->delta, (fa_kernel_strides){padded, 1, x->grids.rows}, out);
}

/* Of calls with expressions too. */
void fa_fast_backward_add_dsinks(const fa_call *call, const fa_fast_backward *x, fa_plan *out) {
  const int block = fa_backward_row_block(x->kernels.head_dim);
  const int64_t padded = fa_backward_round_up(call->a->seqlen_q, block);
  const bool has_batch = !fa_attention_is_varlen(call->a);
  fa_memeff_add_dsinks(call, x->params->delta, (fa_kernel_strides){has_batch ? padded : 0, 1, x->grids.rows},
                       block, out);
}

/* A block of a main kernel for sm_90a does in the same time the work of so many blocks of a portable one. */
#define HOPPER_RATE 2

/* Whether a block by keys of a kernel for sm_90a ends no later than a portable one by queries: then there is nothing to be
 * gained by queries, and two accumulators instead of one to be cleared by a launch more, added to, and converted. */
static bool is_best_by_keys(const fa_call *call, const fa_kernel_device *device, const fa_fast_backward *x) {
  const fa_attention *a = call->a;
  const fa_kernel *k = fa_hopper_main_by_keys(call, device, x);
  return k && k->block_n * a->seqlen_q * (a->heads_q / a->heads_kv) <=
                  HOPPER_RATE * x->kernels.by_queries.block_m * a->seqlen_k;
}

static fa_status plan_fast(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  const bool bias_aligned = !a->bias || fa_bias_is_aligned(a, a->bias, a->bias_stride);
  fa_fast_backward x;
  const fa_status status = fa_fast_backward_find(a, out->aligned && bias_aligned, device, &x.kernels, err);
  if (status != FA_OK) return status;
  out->name = "flash_backward";
  out->adds_dbias = call->g->dbias && fa_backward_adds_dbias(a, call->g);
  if (is_best_by_keys(call, device, &x)) x.kernels.by_queries.block_m = 0; /* not by these */
  fa_fast_backward_prepare(call, call->n_processors, out, &x);
  fa_fast_backward_place(&x, call->workspace);
  add_launches(call, device, &x, out);
  add_dbias(call, &x, out);
  fa_fast_backward_add_dsinks(call, &x, out);
  out->workspace_bytes = out->n_launches ? (size_t)x.n_floats * sizeof(float) : 0;
  return FA_OK;
}

fa_status fa_plan_backward(const fa_call *call, const fa_kernel_device *device, fa_plan *out, fa_error *err) {
  const fa_attention *a = call->a;
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_gradients_check(a, call->g, err);
  if (status != FA_OK) return status;
  out->aligned = fa_gradients_are_aligned(a, call->g);
  if (fa_choose_backward(a, call->g) != FA_KERNELS_MEMEFF) return plan_fast(call, device, out, err);
  fa_memeff_plan_backward(call, device, out);
  return FA_OK;
}
