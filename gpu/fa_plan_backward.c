#include "gpu/fa_plan_backward.h"

#include "gpu/fa_check.h"
#include "gpu/fa_plan.h"
#include "gpu/kernels/flash_backward_plan.h"

#include <string.h>

static fa_status find_kernels(const fa_attention *a, bool aligned, const fa_flash_device *device,
                              fa_flash_backward_kernels *out, fa_error *err) {
  const fa_flash_ability wanted = {.bf16 = a->dtype == FA_BF16,
                                   .head_dim = (int)a->head_dim,
                                   .unaligned = !aligned,
                                   .score_mod = a->softcap > 0 || a->alibi_slopes,
                                   .dropout = a->dropout_p > 0};
  if (fa_flash_backward_find(wanted, device, out)) return FA_OK;
  if (device && fa_flash_backward_find(wanted, NULL, out))
    return fa_fail(err, FA_ERR_UNSUPPORTED,
                   "head_dim = %lld: every backward kernel for it needs more than the device's %zu bytes of "
                   "shared memory",
                   (long long)a->head_dim, device->max_shared_bytes);
  return fa_fail(err, FA_ERR_UNSUPPORTED, "head_dim = %lld: no backward kernel was built for it",
                 (long long)a->head_dim);
}

fa_status fa_backward_supported(const fa_attention *a, const fa_flash_device *device, fa_error *err) {
  fa_flash_backward_kernels kernels;
  return find_kernels(a, true, device, &kernels, err);
}

static fa_status check_gradients(const fa_attention *a, const fa_gradients *g, fa_error *err) {
  if (!g) return fa_fail(err, FA_ERR_INPUT, "the fa_gradients is NULL");
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t batch = varlen ? 0 : a->batch, rows = varlen ? a->total_q : a->seqlen_q;
  const int64_t keys = varlen ? a->total_k : a->seqlen_k;
  if (!varlen && a->batch == 0) return FA_OK;
  const fa_extent all[] = {
      {"d_o", g->d_o, g->do_stride, batch, rows, a->heads_q, a->head_dim, 2, false},
      {"dq", g->dq, g->dq_stride, batch, rows, a->heads_q, a->head_dim, 2, true},
      {"dk", g->dk, g->dk_stride, batch, keys, a->heads_kv, a->head_dim, 2, true},
      {"dv", g->dv, g->dv_stride, batch, keys, a->heads_kv, a->head_dim, 2, true},
      {"d_lse", g->d_lse, g->dlse_stride, batch, rows, a->heads_q, 1, 4, false},
  };
  fa_status status = FA_OK;
  const size_t n = sizeof all / sizeof *all - (g->d_lse ? 0 : 1);
  for (size_t i = 0; status == FA_OK && i < n; ++i) status = fa_extent_check(&all[i], err);
  return status;
}

static bool all_aligned(const fa_attention *a, const fa_gradients *g, bool has_batch) {
  const struct {
    const void *data;
    fa_strides stride;
  } all[] = {{a->q, a->q_stride},    {a->k, a->k_stride},   {a->v, a->v_stride},   {a->o, a->o_stride},
             {g->d_o, g->do_stride}, {g->dq, g->dq_stride}, {g->dk, g->dk_stride}, {g->dv, g->dv_stride}};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (!fa_rows_are_aligned(all[i].data, all[i].stride, has_batch)) return false;
  return true;
}

static void fill_params(const fa_attention *a, const fa_gradients *g, const fa_flash_backward_plan *sizes,
                        fa_flash_backward_params *p) {
  const bool has_batch = !fa_attention_is_varlen(a);
  fa_flash_params_fill(a, &p->forward);
  p->d_o = (const uint16_t *)g->d_o;
  p->d_lse = g->d_lse;
  p->dq = (uint16_t *)g->dq;
  p->dk = (uint16_t *)g->dk;
  p->dv = (uint16_t *)g->dv;
  p->do_stride = fa_flash_strides_of(g->do_stride, has_batch);
  p->dlse_stride = fa_flash_strides_of(g->dlse_stride, has_batch);
  p->dq_stride = fa_flash_strides_of(g->dq_stride, has_batch);
  p->dk_stride = fa_flash_strides_of(g->dk_stride, has_batch);
  p->dv_stride = fa_flash_strides_of(g->dv_stride, has_batch);
  p->scale = (float)a->scale;
  p->scale_log2 = (float)(a->scale * 1.4426950408889634);
  p->rows = sizes->rows;
  p->split_stride = sizes->split_stride;
  p->n_splits = sizes->n_splits;
  p->deterministic = a->deterministic;
}

static void add_launch(fa_backward_plan *p, fa_flash_entry kernel, const unsigned grid[3],
                       size_t shared_bytes) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  p->launch[p->n_launches++] = (fa_backward_launch){kernel, {grid[0], grid[1], grid[2]}, shared_bytes};
}

fa_status fa_backward_plan_make(const fa_attention *a, const fa_gradients *g, const fa_flash_device *device,
                                int n_processors, fa_backward_plan *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  fa_status status = fa_attention_check_problem(a, err);
  if (status == FA_OK) status = fa_attention_check_tensors(a, err);
  if (status == FA_OK) status = check_gradients(a, g, err);
  if (status != FA_OK) return status;
  const bool varlen = fa_attention_is_varlen(a);
  fa_flash_backward_kernels kernels;
  out->aligned = all_aligned(a, g, !varlen);
  if ((status = find_kernels(a, out->aligned, device, &kernels, err)) != FA_OK) return status;
  const fa_flash_backward_sizes sizes = {.batch = a->batch,
                                         .heads_q = a->heads_q,
                                         .heads_kv = a->heads_kv,
                                         .seqlen_q = a->seqlen_q,
                                         .seqlen_k = a->seqlen_k,
                                         .total_q = varlen ? a->total_q : -1,
                                         .head_dim = (int)a->head_dim,
                                         .block_n = kernels.block_n,
                                         .n_processors = n_processors,
                                         .deterministic = a->deterministic};
  const fa_flash_backward_plan plan = fa_flash_backward_plan_make(&sizes);
  fill_params(a, g, &plan, &out->params);
  out->params.forward.aligned = out->aligned;
  out->n_threads = FA_FLASH_BACKWARD_THREADS;
  out->n_splits = plan.n_splits;
  add_launch(out, kernels.prepare, plan.prepare_grid, 0);
  add_launch(out, kernels.main, plan.main_grid, kernels.shared_bytes);
  add_launch(out, kernels.convert, plan.convert_grid, 0);
  out->workspace_bytes = out->n_launches ? (size_t)plan.n_floats * sizeof(float) : 0;
  out->delta_at = plan.delta_at;
  out->dq_accum_at = plan.dq_accum_at;
  return FA_OK;
}

void fa_backward_plan_place(fa_backward_plan *plan, void *workspace) {
  plan->params.lse_log2 = (float *)workspace;
  plan->params.delta = (float *)workspace + plan->delta_at;
  plan->params.dq_accum = (float *)workspace + plan->dq_accum_at;
}
