#include "gpu/plan/backward.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/plan/forward.h"
#include "gpu/plan/memeff.h"
#include "gpu/kernels/params/flash_backward_grids.h"

#include <string.h>

static fa_status find_kernels(const fa_attention *a, bool aligned, const fa_kernel_device *device,
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

fa_status fa_backward_supported(const fa_attention *a, const fa_kernel_device *device, fa_error *err) {
  if (fa_choose_backward(a, NULL) == FA_KERNELS_MEMEFF) return FA_OK;
  fa_flash_backward_kernels kernels;
  return find_kernels(a, true, device, &kernels, err);
}

static bool all_aligned(const fa_attention *a, const fa_gradients *g) {
  return fa_attention_is_aligned(a) && fa_rows_are_aligned(a, g->d_o, g->do_stride) &&
         fa_rows_are_aligned(a, g->dq, g->dq_stride) && fa_rows_are_aligned(a, g->dk, g->dk_stride) &&
         fa_rows_are_aligned(a, g->dv, g->dv_stride);
}

static void fill_params(const fa_attention *a, const fa_gradients *g, const fa_backward_grids *sizes,
                        bool subtracts_first, fa_backward_params *p) {
  FA_FILL_GRADIENTS(p, a, g);
  p->scale_log2 = (float)(a->scale * 1.4426950408889634);
  p->inverse_softcap = a->softcap > 0 ? (float)(1.0 / a->softcap) : 0.0f;
  p->softcap_log2 = (float)(a->softcap * 1.4426950408889634);
  p->lse_factor = subtracts_first ? 1.0f : 1.44269504f;
  if (g->dbias && !fa_memeff_dbias_sums(a, g)) {
    p->dbias = (uint16_t *)g->dbias;
    p->dbias_aligned = fa_bias_is_aligned(a, g->dbias, g->dbias_stride);
  }
  p->rows = sizes->rows;
  p->keys = sizes->keys;
  p->split_stride = sizes->split_stride;
  p->n_splits = sizes->n_splits;
  p->deterministic = a->deterministic;
}

static void add_launch(fa_backward_plan *p, fa_kernel_entry kernel, const unsigned grid[3], int n_threads,
                       size_t shared_bytes) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  p->launch[p->n_launches++] =
      (fa_backward_launch){kernel, {grid[0], grid[1], grid[2]}, (unsigned)n_threads, shared_bytes, false};
}
static void add_row_launch(fa_backward_plan *p, fa_kernel_entry kernel, const unsigned grid[3]) {
  add_launch(p, kernel, grid, FA_BACKWARD_THREADS, 0);
}

/* Sums of dbias whose parts are added in memory: the parameters, and the floats that they take in the
 * workspace from `at` on. */
static int64_t fill_dbias_sums(const fa_attention *a, const fa_gradients *g, int64_t at,
                               fa_backward_plan *out) {
  const int sums = fa_memeff_dbias_sums(a, g);
  fa_backward_params *p = &out->params;
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
  out->dbias_at = at;
  return p->dbias_floats;
}

/* In the order of gpu/kernels/params/flash_backward_grids.h. */
static void add_launches(fa_backward_plan *p, const fa_flash_backward_kernels *k,
                         const fa_backward_grids *sizes, const unsigned dbias_grid[3]) {
  const fa_backward_params *x = &p->params;
  const fa_kernel_main *main = sizes->by_queries ? &k->by_queries : &k->by_keys;
  add_row_launch(p, sizes->by_queries ? k->prepare_only : k->prepare, sizes->rows_grid);
  if (sizes->by_queries) add_row_launch(p, k->clear, sizes->clear_grid);
  if (x->dbias_sums)
    add_row_launch(
        p, k->dbias_clear,
        (unsigned[]){(unsigned)fa_backward_blocks(x->dbias_floats, FA_DBIAS_CLEARED), 1, 1});
  add_launch(p, main->kernel, sizes->main_grid, main->n_threads, main->shared_bytes);
  if (sizes->by_queries)
    add_row_launch(p, k->convert_keys, sizes->convert_keys_grid);
  else
    add_row_launch(p, k->convert, sizes->rows_grid);
  if (x->dbias_sums) add_row_launch(p, k->dbias_convert, dbias_grid);
}

/* g: NULL, or it may say how many accumulators there are. */
static fa_backward_grids plan_sizes(const fa_attention *a, const fa_gradients *g,
                                         const fa_flash_backward_kernels *kernels, int n_processors) {
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
                                         .n_splits = g ? (int)g->num_splits_key : 0};
  return fa_backward_grids_make(&sizes);
}

int fa_backward_adds_keys(const fa_attention *a, const fa_kernel_device *device, int n_processors) {
  int least = 0;
  if (fa_choose_backward(a, NULL) == FA_KERNELS_MEMEFF) return 0; /* nobody adds to what another block writes */
  for (int aligned = 0; aligned < 2; ++aligned) {
    fa_flash_backward_kernels kernels;
    if (find_kernels(a, aligned, device, &kernels, NULL) != FA_OK) continue;
    if (!plan_sizes(a, NULL, &kernels, n_processors).by_queries) continue;
    if (!least || kernels.by_queries.block_m < least) least = kernels.by_queries.block_m;
  }
  return least;
}

bool fa_backward_adds_dbias(const fa_attention *a, const fa_gradients *g) {
  const int sums = fa_memeff_dbias_sums(a, g);
  return !a->deterministic && sums != 0 && (sums & FA_MEMEFF_SUM_ROWS) == 0;
}

bool fa_backward_adds_rows(const fa_attention *a, const fa_kernel_device *device) {
  return fa_choose_backward(a, NULL) == FA_KERNELS_MEMEFF && fa_memeff_single_pass(a, device) != NULL;
}

/* The launches and the workspace of a call by the fast kernels. */
static void plan_fast(const fa_attention *a, const fa_gradients *g, const fa_flash_backward_kernels *kernels,
                      int n_processors, fa_backward_plan *out) {
  const fa_backward_grids plan = plan_sizes(a, g, kernels, n_processors);
  fill_params(a, g, &plan, kernels->by_keys.subtracts_first, &out->params);
  out->params.forward.aligned = out->aligned;
  out->by_queries = plan.by_queries;
  out->head_dim = kernels->head_dim;
  out->n_splits = plan.n_splits;
  const int64_t sums_at = fa_backward_round_up(plan.n_floats, 64);
  const int64_t sums = fill_dbias_sums(a, g, sums_at, out), n_floats = sums ? sums_at + sums : plan.n_floats;
  const unsigned dbias_grid[] = {(unsigned)fa_backward_blocks(a->seqlen_q, 16),
                                 out->params.dbias_accum_stride.head ? (unsigned)a->heads_q : 1,
                                 out->params.dbias_accum_stride.batch ? (unsigned)a->batch : 1};
  add_launches(out, kernels, &plan, dbias_grid);
  if (g->dbias && !out->params.dbias && !out->params.dbias_sums) {
    const int64_t padded =
        fa_backward_round_up(a->seqlen_q, fa_backward_row_block(kernels->head_dim));
    fa_memeff_dbias_plan(a, g, (fa_kernel_strides){padded, 1, plan.rows}, out);
  }
  out->workspace_bytes = out->n_launches ? (size_t)n_floats * sizeof(float) : 0;
  out->delta_at = plan.delta_at;
  out->dq_semaphore_at = plan.dq_semaphore_at;
  memcpy(out->accum_at, plan.accum_at, sizeof out->accum_at);
}

fa_status fa_backward_plan_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                int n_processors, fa_backward_plan *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = fa_gradients_check(a, g, err);
  if (status != FA_OK) return status;
  out->aligned = all_aligned(a, g);
  if (fa_choose_backward(a, g) == FA_KERNELS_MEMEFF) {
    fa_memeff_backward_plan_make(a, g, device, out);
    return FA_OK;
  }
  fa_flash_backward_kernels kernels;
  const bool bias_aligned = !a->bias || fa_bias_is_aligned(a, a->bias, a->bias_stride);
  if ((status = find_kernels(a, out->aligned && bias_aligned, device, &kernels, err)) != FA_OK) return status;
  plan_fast(a, g, &kernels, n_processors, out);
  return FA_OK;
}

bool fa_backward_plan_around(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                             const fa_kernel_main *main, int n_processors, fa_backward_plan *out) {
  fa_flash_backward_kernels kernels;
  memset(out, 0, sizeof *out);
  out->aligned = all_aligned(a, g);
  if (find_kernels(a, out->aligned, device, &kernels, NULL) != FA_OK) return false;
  kernels.by_keys = *main;
  kernels.by_queries.block_m = 0; /* not by these */
  plan_fast(a, g, &kernels, n_processors, out);
  return true;
}

void fa_backward_plan_place(fa_backward_plan *plan, void *workspace) {
  float *at = (float *)workspace;
  if (plan->is_memeff) {
    if (!plan->memeff.delta) plan->memeff.delta = at;
    return;
  }
  plan->memeff.delta = at + plan->delta_at;
  plan->params.lse_log2 = at;
  plan->params.delta = at + plan->delta_at;
  if (plan->params.dbias_sums) plan->params.dbias_accum = at + plan->dbias_at;
  if (plan->by_queries) {
    plan->params.dk_accum = at + plan->accum_at[0];
    plan->params.dv_accum = at + plan->accum_at[1];
  } else {
    plan->params.dq_accum = at + plan->accum_at[0];
  }
}

const void *fa_backward_plan_params(const fa_backward_plan *plan, int launch) {
  return plan->launch[launch].is_memeff ? (const void *)&plan->memeff : &plan->params;
}
