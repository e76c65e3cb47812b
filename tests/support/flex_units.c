#include "tests/support/flex_units.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 17] __attribute__((aligned(256)));

static void fill_call(const flex_units_call *call, const fa_flex *flex, fa_attention *a, fa_gradients *g) {
  fa_attention_init(a);
  fa_gradients_init(g);
  a->dtype = call->dtype;
  a->heads_q = a->heads_kv = 4;
  const int64_t rows = call->rows ? call->rows : 256;
  a->seqlen_q = a->seqlen_k = rows;
  a->head_dim = call->head_dim;
  a->scale = 0.1;
  a->flex = flex;
  a->q = a->k = a->v = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = a->k_stride = a->v_stride = a->o_stride = fa_strides_dense(rows, 4, call->head_dim);
  a->lse_stride = (fa_strides){4 * rows, 1, rows};
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = g->dq_stride = g->dk_stride = g->dv_stride = a->q_stride;
}

static void collect(const flex_units_call *call, const fa_attention *a, const fa_gradients *g,
                    flex_units *u) {
  for (int i = 0; i < u->plan.n_launches; ++i) {
    const fa_launch *l = &u->plan.launch[i];
    if (!l->mods) continue;
    fa_cuda_flex_wanted *w = &u->unit[u->n++];
    *w = (fa_cuda_flex_wanted){.name = l->kernel.name,
                               .recipe = &l->kernel.recipe,
                               .shared_bytes = l->shared_bytes,
                               .unit = {.source = l->kernel.recipe.source,
                                        .program = u->program,
                                        .has_score = l->mods != FA_MODS_MASK,
                                        .drops = l->mods != FA_MODS_MASK && a->dropout_p > 0,
                                        .has_slope = l->mods == FA_MODS_DERIVATIVE,
                                        .lacks = l->lacks,
                                        .speed = call->dtype == FA_F32 ? FA_EXPR_ACCURATE : FA_EXPR_FAST}};
    for (int k = 0; call->backward && k < FA_FLEX_MAX_BUFFERS; ++k) w->unit.wanted[k] = g->dbuffer[k] != NULL;
  }
}

bool flex_units_of(const flex_units_call *call, flex_units *u, fa_error *err) {
  static const int64_t turned[] = {1, 4}, repeated[] = {0, 3};
  static const fa_flex_buffer buffers[] = {
      {"slopes", FA_F32, 1, {4}, NULL},        {"table", FA_F32, 2, {4, 9}, NULL},
      {"doc", FA_I32, 1, {256}, NULL},         {"half", FA_F16, 2, {4, 9}, turned},
      {"brain", FA_BF16, 2, {4, 9}, repeated}, {"id", FA_I64, 1, {256}, NULL},
      {"keep", FA_BOOL, 1, {256}, NULL}};
  enum { N_BUFFERS = sizeof buffers / sizeof *buffers };
  const fa_kernel_device device = {
      .max_shared_bytes = 227 << 10, .compiles = 1, .hopper = call->hopper ? 132 : 0};
  fa_attention a;
  fa_gradients g;
  fa_flex flex;
  memset(u, 0, sizeof *u);
  if (fa_flex_prepare(call->score, call->mask, buffers, N_BUFFERS, &u->program, err) != FA_OK) return false;
  fa_flex_init(&flex);
  flex.program = u->program;
  for (int k = 0; k < N_BUFFERS; ++k) flex.buffer[k] = memory;
  if (call->mask) {
    flex.q_block = flex.kv_block = 128;
    flex.blocks_from_mask_mod = true;
  }
  fill_call(call, &flex, &a, &g);
  for (int k = 0; call->backward && call->score && k < N_BUFFERS; ++k)
    if (fa_capture_is_float(&u->program->buffer[k]) && fa_expr_reads(&u->program->score, k))
      g.dbuffer[k] = memory;
  const fa_call planned = {.kind = call->backward ? FA_CALL_BACKWARD : FA_CALL_FORWARD,
                           .a = &a,
                           .g = &g,
                           .n_processors = FA_PLAN_PROCESSORS,
                           .workspace = memory};
  const fa_status status = fa_plan_make(&planned, &device, &u->plan, err);
  if (status == FA_OK) collect(call, &a, &g, u);
  if (status != FA_OK) flex_units_free(u);
  return status == FA_OK;
}

void flex_units_free(flex_units *u) {
  fa_flex_free(u->program);
  memset(u, 0, sizeof *u);
}
