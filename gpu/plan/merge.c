/* Calls that merge partial states: one launch each, and no workspace. */
#include "gpu/call/check_merge.h"
#include "gpu/plan/parts.h"

static fa_merge_tensor tensor_of(const void *data, fa_strides s, int64_t part) {
  return (fa_merge_tensor){(void *)data, part, {s.batch, s.row, s.head}};
}

static void fill(const fa_states *s, const fa_states_gradients *g, fa_merge_params *p) {
  *p = (fa_merge_params){.o_parts = tensor_of(s->o_parts, s->o_parts_stride, s->o_parts_step),
                         .lse_parts = tensor_of(s->lse_parts, s->lse_parts_stride, s->lse_parts_step),
                         .o = tensor_of(s->o, s->o_stride, 0),
                         .lse = tensor_of(s->lse, s->lse_stride, 0),
                         .n_rows = s->batch * s->heads * s->rows,
                         .heads = (int)s->heads,
                         .rows = (int)s->rows,
                         .parts = (int)s->parts,
                         .head_dim = (int)s->head_dim,
                         .base_2 = s->base_2};
  if (!g) return;
  p->d_o = tensor_of(g->d_o, g->do_stride, 0);
  p->d_lse = tensor_of(g->d_lse, g->dlse_stride, 0);
  p->do_parts = tensor_of(g->do_parts, g->do_parts_stride, g->do_parts_step);
  p->dlse_parts = tensor_of(g->dlse_parts, g->dlse_parts_stride, g->dlse_parts_step);
}

fa_status fa_plan_merge(const fa_call *call, fa_plan *out, fa_error *err) {
  const fa_states *s = call->states;
  const bool backward = call->kind == FA_CALL_MERGE_BACKWARD;
  const fa_states_gradients *g = backward ? call->states_g : NULL;
  if (backward && !g) return fa_fail(err, FA_ERR_INPUT, "the gradients are NULL");
  fa_status status = fa_states_check_problem(s, err);
  if (status == FA_OK) status = fa_states_check_tensors(s, g, err);
  if (status != FA_OK) return status;
  const fa_kernel *k = fa_merge_find(s->dtype, s->parts_dtype, backward);
  out->family = FA_PLAN_MERGE;
  out->name = backward ? "merge_backward" : "merge_forward";
  out->aligned = true; /* nothing is read more than one element at a time */
  fa_plan_blocks(out, k->block_m, 0);
  if (fa_states_are_empty(s)) return FA_OK;
  fa_merge_params *p = fa_plan_params(out, sizeof *p);
  fill(s, g, p);
  fa_plan_add(out, FA_ENTRY_OF(k), fa_blocks_of(p->n_rows, k->block_m), 1, 1, k->n_threads, k->shared_bytes,
              p)
      ->writes = backward ? FA_WRITES(FA_T_DO_PARTS) | FA_WRITES(FA_T_DLSE_PARTS) : FA_WRITES_FORWARD;
  return FA_OK;
}
