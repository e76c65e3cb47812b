/* Features of a case's memory, data and runs, which are not part of its problem. */
#include "cases/tensors/table.h"
#include "fuzz/coverage/table.h"

#include <stdio.h>
#include <string.h>

static void cover_memory(fa_coverage *v, const fa_case *c) {
  bool gap[3] = {false}, expand[3] = {false}, offset = false, odd = false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_stride_recipe *r = &c->strides[id];
    for (int a = 0; a < 3; ++a) gap[a] |= r->gap[a] > 0, expand[a] |= r->expand[a];
    offset |= r->offset > 0;
    odd |= r->offset % 2 == 1;
  }
  fa_coverage_see(v, FA_COVER_LAYOUT, 1500, "layout bhsd", c->layout == FA_LAYOUT_BHSD);
  fa_coverage_see(v, FA_COVER_LAYOUT, 1500, "layout sbhd", c->layout == FA_LAYOUT_SBHD);
  fa_coverage_see(v, FA_COVER_LAYOUT, 300, "packed qkv", c->packing == FA_PACK_QKV);
  fa_coverage_see(v, FA_COVER_LAYOUT, 500, "packed kv", c->packing == FA_PACK_KV);
  fa_coverage_see(v, FA_COVER_LAYOUT, 2000, "gap after entries", gap[0]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 2000, "gap after rows", gap[1]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 2000, "gap after heads", gap[2]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 400, "expanded over entries", expand[0]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 400, "expanded over rows", expand[1]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 400, "expanded over heads", expand[2]);
  fa_coverage_see(v, FA_COVER_LAYOUT, 1500, "offset base", offset);
  fa_coverage_see(v, FA_COVER_LAYOUT, 800, "odd base", odd);
  fa_coverage_see(v, FA_COVER_LAYOUT, 1000, "k and v with different strides",
                  memcmp(&c->strides[FA_T_K], &c->strides[FA_T_V], sizeof c->strides[0]) != 0);
  fa_coverage_see(v, FA_COVER_LAYOUT, 1000, "o and do with different strides",
                  memcmp(&c->strides[FA_T_O], &c->strides[FA_T_DO], sizeof c->strides[0]) != 0);
  fa_coverage_see(v, FA_COVER_DATA, 6000, "generic data", fa_case_is_generic(c));
}

static void cover_fills(fa_coverage *v, const fa_case *c) {
  for (int f = 0; f < FA_N_FILLS; ++f) {
    char name[56];
    bool used = false;
    for (int id = 0; id < FA_T_COUNT; ++id)
      used |=
          fa_case_has_fill((fa_tensor_id)id) && fa_case_uses(c, (fa_tensor_id)id) && (int)c->fill[id] == f;
    snprintf(name, sizeof name, "fill %s", fa_fill_describe((fa_fill)f)->name);
    fa_coverage_see(v, FA_COVER_DATA, 25, name, used);
  }
  const fa_problem *p = &c->problem;
  fa_coverage_see(v, FA_COVER_DATA, 1000, "NaN in keys that no length reaches",
                  p->seqused_k.n > 0 || p->leftpad_k.n > 0 || p->kvcache.present);
}

/* Distance of the farthest element from the first, in elements. */
static int64_t reach_of(const fa_case *c, fa_tensor_id id) {
  static const int inner_to_outer[3][3] = {{2, 1, 0}, {1, 2, 0}, {2, 0, 1}}; /* bshd, bhsd, sbhd */
  const fa_stride_recipe *r = &c->strides[id];
  const bool bias = fa_tensor_describe(id)->axes == FA_AXES_BIAS;
  int64_t shape[4], reach;
  fa_case_tensor_shape(c, id, shape);
  int64_t step = shape[3];
  reach = step - 1;
  for (int i = 0; i < 3; ++i) {
    const int axis = inner_to_outer[bias ? FA_LAYOUT_BHSD : c->layout][i];
    step += r->gap[axis];
    if (shape[axis] > 1 && !r->expand[axis]) reach += (shape[axis] - 1) * step;
    if (shape[axis] > 1 && !r->expand[axis]) step *= shape[axis];
  }
  return reach;
}

static void cover_offsets(fa_coverage *v, const fa_case *c) {
  bool bytes31 = false, elements31 = false, gradients31 = false, elements32 = false, axis[3] = {false},
       tail = false;
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const bool used = fa_case_has_strides((fa_tensor_id)id) && fa_case_uses(c, (fa_tensor_id)id);
    bool huge = false;
    if (used) {
      const int64_t reach = reach_of(c, (fa_tensor_id)id);
      bytes31 |= reach * (int64_t)fa_dtype_size(c->problem.dtype) > (int64_t)1 << 31;
      elements31 |= huge = reach > (int64_t)1 << 31;
      const fa_tensor_info *info = fa_tensor_describe((fa_tensor_id)id);
      gradients31 |= huge && info->gradient && info->axes == FA_AXES_TOKENS;
      elements32 |= reach > (int64_t)1 << 32;
      for (int a = 0; a < 3; ++a) axis[a] |= c->strides[id].gap[a] > 1 << 24;
      tail |= c->strides[id].tail > 0;
    }
    if (fa_case_has_strides((fa_tensor_id)id)) {
      char name[56];
      snprintf(name, sizeof name, "offsets of %s beyond 2^31 elements", fa_tensor_id_name((fa_tensor_id)id));
      fa_coverage_see(v, FA_COVER_OFFSETS, 1, name, huge);
    }
  }
  fa_coverage_see(v, FA_COVER_OFFSETS, 40, "offsets beyond 2^31 bytes", bytes31);
  fa_coverage_see(v, FA_COVER_OFFSETS, 30, "offsets beyond 2^31 elements", elements31);
  fa_coverage_see(v, FA_COVER_OFFSETS, 8, "offsets beyond 2^32 elements", elements32);
  fa_coverage_see(v, FA_COVER_OFFSETS, 8, "flex: offsets beyond 2^31 elements",
                  elements31 && c->problem.family == FA_FLEX);
  fa_coverage_see(v, FA_COVER_OFFSETS, 3, "flex: gradients beyond 2^31 elements",
                  gradients31 && c->problem.family == FA_FLEX);
  fa_coverage_see(v, FA_COVER_OFFSETS, 10, "huge stride of entries", axis[0]);
  fa_coverage_see(v, FA_COVER_OFFSETS, 10, "huge stride of rows", axis[1]);
  fa_coverage_see(v, FA_COVER_OFFSETS, 10, "huge stride of heads", axis[2]);
  fa_coverage_see(v, FA_COVER_VARLEN, 500, "tokens past the last entry",
                  tail && fa_problem_is_varlen(&c->problem));
}

static void cover_runs(fa_coverage *v, const fa_case *c) {
  const fa_problem *p = &c->problem;
  fa_coverage_see(v, FA_COVER_MEMORY, 8000, "outputs before later runs: NaN", c->poison == FA_POISON_B);
  fa_coverage_see(v, FA_COVER_MEMORY, 1500, "outputs before later runs: infinity",
                  c->poison == FA_POISON_INF);
  fa_coverage_see(v, FA_COVER_MEMORY, 1500, "outputs before later runs: zero", c->poison == FA_POISON_ZERO);
  fa_coverage_see(v, FA_COVER_MEMORY, 1500, "outputs before later runs: a number",
                  c->poison == FA_POISON_FINITE);
  fa_coverage_see(v, FA_COVER_REPETITION, 500, "more than two runs", c->repeat > 2);
  fa_coverage_see(v, FA_COVER_REPETITION, 60, "more than two runs of a deterministic backward",
                  c->repeat > 2 && p->deterministic && p->backward);
  fa_coverage_see(v, FA_COVER_REPETITION, 4000, "shuffled from the first run on", c->schedule_seed != 0);
  fa_coverage_see(v, FA_COVER_REPETITION, 3000, "deterministic gradients", p->deterministic && p->backward);
}

void fa_coverage_memory(fa_coverage *v, const fa_case *c) {
  cover_memory(v, c);
  cover_offsets(v, c);
  cover_fills(v, c);
  cover_runs(v, c);
}
