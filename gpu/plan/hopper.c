#include "gpu/plan/hopper.h"

#include "gpu/call/check.h"
#include "gpu/call/choose.h"
#include "gpu/expr/program.h"
#include "gpu/plan/forward.h"

#include <stdio.h>
#include <string.h>

/* What the maps and the kernels' own restrictions allow, beside their abilities. */
static bool is_possible(const fa_attention *a, const fa_kernel_device *device) {
  return device && device->hopper && !fa_attention_is_empty(a) && fa_choose_forward(a) == FA_KERNELS_FLASH &&
         a->seqlen_q > 0 && a->seqlen_k > 0 && fa_attention_is_aligned(a);
}

static bool has_lengths(const fa_attention *a) {
  return fa_attention_is_varlen(a) || a->seqused_k || a->leftpad_k;
}

/* False: no map has such strides, or nothing in it. An axis of one element has any. */
static bool fill_box(fa_tensor_box *x, const fa_attention *a, const void *base, fa_strides s, int64_t rows,
                     int64_t heads, int64_t head_dim, uint32_t box_rows) {
  const int64_t size[4] = {head_dim, rows, heads, fa_attention_is_varlen(a) ? 1 : a->batch},
                stride[3] = {s.row, s.head, s.batch};
  if (rows <= 0) return false;
  *x = (fa_tensor_box){
      .base = base, .box = {64, box_rows, 1, 1}, .swizzle = FA_SWIZZLE_128, .bf16 = a->dtype == FA_BF16};
  for (int i = 0; i < 4; ++i) x->size[i] = (uint64_t)size[i];
  for (int i = 0; i < 3; ++i) {
    if (size[i + 1] > 1 && (stride[i] <= 0 || stride[i] >= (int64_t)1 << 38)) return false;
    x->bytes[i] = size[i + 1] > 1 ? (uint64_t)stride[i] * 2 : 16;
  }
  return true;
}

static bool fill_boxes(const fa_attention *a, fa_hopper_plan *p) {
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t head_dim_v = fa_attention_head_dim_v(a), rows = varlen ? a->total_q : a->seqlen_q,
                all_keys = varlen ? a->total_k : a->seqlen_k;
  const uint32_t keys = (uint32_t)p->kernel->block_n;
  return fill_box(&p->box[0], a, a->q, a->q_stride, rows, a->heads_q, a->head_dim, 64) &&
         fill_box(&p->box[1], a, a->k, a->k_stride, all_keys, a->heads_kv, a->head_dim, keys) &&
         fill_box(&p->box[2], a, a->v, a->v_stride, all_keys, a->heads_kv, head_dim_v, keys) &&
         fill_box(&p->box[3], a, a->o, a->o_stride, rows, a->heads_q, head_dim_v, 16);
}

/* Heads whose keys and values together stay in the L2 cache while all their row blocks pass: where row blocks
 * differ in length, and the long ones are to come first. Else row blocks of one head follow one another. */
static int section_of(const fa_attention *a, bool uneven) {
  const int64_t cache = (int64_t)32 << 20, heads = a->batch * a->heads_q;
  const int64_t of_kv_head = a->seqlen_k * (a->head_dim + fa_attention_head_dim_v(a)) * 2;
  int64_t n = 1;
  while (uneven && 2 * n <= heads && 2 * n * of_kv_head / (a->heads_q / a->heads_kv) <= cache) n *= 2;
  return (int)n;
}

/* Of out->kernel, whose row blocks differ in how many keys they see if uneven. */
static bool plan_launch(const fa_attention *a, const fa_kernel_device *device, bool uneven,
                        fa_hopper_plan *out) {
  if (!out->kernel || !fill_boxes(a, out)) return false;
  fa_attention_params_fill(a, &out->params.f);
  const int64_t row_blocks = (a->seqlen_q + out->kernel->block_m - 1) / out->kernel->block_m;
  const int64_t heads = a->batch * a->heads_q, n = row_blocks * heads;
  if (n > 1 << 30) return false;
  uneven |= out->params.f.window_right >= 0;
  const int64_t rest = a->seqlen_q % out->kernel->block_m;
  const bool short_last = rest > 0 && rest <= out->kernel->block_m - 64;
  out->params.tiles = (fa_tile_scheduler_params){.n = (int)n,
                                        .row_blocks = (int)row_blocks,
                                        .heads = (int)heads,
                                        .section = section_of(a, uneven || short_last),
                                        .last_first = uneven,
                                        .counter = -1};
  out->n_blocks = (unsigned)(n < device->hopper ? n : device->hopper);
  return true;
}

bool fa_hopper_plan_make(const fa_attention *a, const fa_kernel_device *device, fa_hopper_plan *out) {
  memset(out, 0, sizeof *out);
  if (a->flex || a->scale <= 0 || (a->alibi_slopes && a->mask_top_left) || !is_possible(a, device))
    return false;
  out->kernel = fa_hopper_forward_find(fa_kernel_wanted(a, true), a->seqlen_k, has_lengths(a), device);
  return plan_launch(a, device, false, out);
}

bool fa_hopper_flex_make(const fa_attention *a, const fa_kernel_device *device, fa_hopper_plan *out) {
  memset(out, 0, sizeof *out);
  if (a->scale <= 0 || has_lengths(a) || !is_possible(a, device)) return false;
  out->kernel = fa_hopper_flex_forward_find(fa_kernel_wanted(a, true), device);
  return plan_launch(a, device, fa_flex_has_blocks(a), out);
}

fa_tensor_map *fa_hopper_map(fa_hopper_plan *plan, int i) {
  fa_hopper_params *p = &plan->params;
  fa_tensor_map *const maps[] = {&p->q, &p->k, &p->v, &p->o};
  return maps[i];
}

/* By keys, and nothing else than dQ, dK and dV. */
static bool is_plain(const fa_backward_plan *plan) {
  const fa_backward_params *p = &plan->params;
  return plan->n_launches == 3 && !plan->is_memeff && !plan->by_queries && plan->aligned && !p->dbias &&
         !p->dbias_sums;
}

/* All of *out but the kernel, which is there. False: no map has such strides. */
static bool plan_backward(const fa_attention *a, const fa_gradients *g, const fa_backward_plan *plan,
                          fa_hopper_backward_plan *out) {
  const fa_kernel *k = out->kernel;
  const fa_backward_params *p = &plan->params;
  const bool varlen = fa_attention_is_varlen(a);
  const int64_t head_dim_v = fa_attention_head_dim_v(a), all_rows = varlen ? a->total_q : a->seqlen_q,
                all_keys = varlen ? a->total_k : a->seqlen_k;
  const uint32_t rows = (uint32_t)(k->block_m / fa_hopper_backward_cluster(k)), keys = (uint32_t)k->block_n;
  if (!fill_box(&out->box[0], a, a->q, a->q_stride, all_rows, a->heads_q, a->head_dim, rows) ||
      !fill_box(&out->box[1], a, a->k, a->k_stride, all_keys, a->heads_kv, a->head_dim, keys) ||
      !fill_box(&out->box[2], a, a->v, a->v_stride, all_keys, a->heads_kv, head_dim_v, keys) ||
      !fill_box(&out->box[3], a, g->d_o, g->do_stride, all_rows, a->heads_q, head_dim_v, rows) ||
      !fill_box(&out->box[4], a, g->dk, g->dk_stride, all_keys, a->heads_kv, a->head_dim, 16) ||
      !fill_box(&out->box[5], a, g->dv, g->dv_stride, all_keys, a->heads_kv, head_dim_v, 16))
    return false;
  out->params.b = *p;
  out->params.row_dim = plan->head_dim;
  out->cluster = (unsigned)fa_hopper_backward_cluster(k);
  const int64_t together = out->cluster, of_cluster = together * k->block_n;
  const bool is_ordered = p->deterministic && out->cluster == 1 && !a->flex;
  if (is_ordered) {
    out->params.b.dq_semaphore = (unsigned *)p->lse_log2 + plan->dq_semaphore_at; /* lse_log2: where the workspace begins */
    out->params.b.n_splits = 1;
  }
  out->grid[0] = p->deterministic && !is_ordered
                     ? (unsigned)p->n_splits * out->cluster
                     : (unsigned)((a->seqlen_k + of_cluster - 1) / of_cluster * together);
  out->grid[1] = (unsigned)a->heads_kv;
  out->grid[2] = (unsigned)a->batch;
  return true;
}

/* The other kernels of the call read the same workspace; where two head dims differ, their tiles may be wider
 * than this one's. Those in clusters ask how wide it is, and can leave half a panel out. */
static bool shares_workspace(const fa_kernel *k, const fa_backward_plan *plan) {
  if (fa_hopper_backward_cluster(k) > 1) return plan->head_dim >= k->ability.head_dim - 32;
  return k->ability.head_dim == plan->head_dim;
}

/* Where the call's own main kernel subtracts before it scales to base 2, the workspace has LSE as it is. */
static bool has_lse_log2(const fa_backward_plan *plan) {
  return plan->params.lse_factor != 1.0f;
}

bool fa_hopper_backward_make(const fa_attention *a, const fa_gradients *g, const fa_backward_plan *plan,
                             const fa_kernel_device *device, fa_hopper_backward_plan *out) {
  memset(out, 0, sizeof *out);
  if (a->flex || !is_plain(plan) || !is_possible(a, device)) return false;
  out->kernel =
      fa_hopper_backward_find(fa_kernel_wanted(a, true), has_lengths(a), plan->params.deterministic, device);
  return out->kernel && shares_workspace(out->kernel, plan) && has_lse_log2(plan) &&
         plan_backward(a, g, plan, out);
}

bool fa_hopper_flex_backward_make(const fa_attention *a, const fa_gradients *g, const fa_kernel_device *device,
                                  fa_backward_plan *around, fa_hopper_backward_plan *out) {
  memset(out, 0, sizeof *out);
  if (has_lengths(a) || !is_possible(a, device) || a->bias || a->softcap > 0 || a->alibi_slopes || g->delta)
    return false;
  out->kernel = fa_hopper_flex_backward_find(fa_kernel_wanted(a, true), a->deterministic, device);
  if (!out->kernel) return false;
  const fa_kernel *k = out->kernel;
  const fa_kernel_main main = {.kernel = {k->name, k->entry, k->recipe},
                              .block_m = k->block_m,
                              .block_n = k->block_n,
                              .n_threads = k->n_threads,
                              .shared_bytes = k->shared_bytes,
                              .subtracts_first = 1};
  /* the executor's few are to share accumulators too; on all devices the same number */
  const int n_processors = device->hopper < 16 ? device->hopper : FA_DETERMINISTIC_PROCESSORS;
  return fa_backward_plan_around(a, g, device, &main, n_processors, around) && is_plain(around) &&
         shares_workspace(k, around) && plan_backward(a, g, around, out);
}

fa_tensor_map *fa_hopper_backward_map(fa_hopper_backward_plan *plan, int i) {
  fa_hopper_backward_params *p = &plan->params;
  fa_tensor_map *const maps[] = {&p->q, &p->k, &p->v, &p->d_o, &p->dk, &p->dv};
  return maps[i];
}

void fa_hopper_rename(char *kernel, size_t size) {
  char rest[256];
  const bool is_flex = strncmp(kernel, "flex_", 5) == 0;
  if (!is_flex && strncmp(kernel, "flash_", 6) != 0) return;
  snprintf(rest, sizeof rest, "%s", kernel + (is_flex ? 0 : 6)); /* hopper_forward, hopper_flex_forward */
  snprintf(kernel, size, "hopper_%s", rest);
}
