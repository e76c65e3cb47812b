/* Which calls of f32 are a kernel's for sm_90a, and which a portable one's. */
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 12] __attribute__((aligned(256)));

enum { ROWS = 300, KEYS = 400, HEADS = 4, BATCH = 3 };

typedef struct example {
  const char *name;
  int64_t head_dim, head_dim_v;
  void (*change)(fa_attention *a);
  bool is_tf32;
} example;

static void unaligned(fa_attention *a) {
  ++a->k_stride.row;
}
static void alibi(fa_attention *a) {
  a->alibi_slopes = (float *)memory;
}
static void softcap(fa_attention *a) {
  a->softcap = 5;
}
static void bias(fa_attention *a) {
  a->bias = memory;
  a->bias_stride = (fa_strides){HEADS * ROWS * KEYS, KEYS, ROWS * KEYS};
}
static void causal(fa_attention *a) {
  a->window_right = 0;
}
static void negative(fa_attention *a) {
  a->scale = -0.1;
}
static void bf16(fa_attention *a) {
  a->dtype = FA_BF16;
}
static void no_rows(fa_attention *a) {
  a->seqlen_q = 0;
}

static const example examples[] = {
    {"64", 64, 64, NULL, true},
    {"128", 128, 128, NULL, true},
    {"causal", 128, 128, causal, true},
    {"a negative scale", 64, 64, negative, true},
    {"32", 32, 32, NULL, false},
    {"96", 96, 96, NULL, false},
    {"192", 192, 192, NULL, false},
    {"narrow values", 128, 64, NULL, false},
    {"wide values", 64, 128, NULL, false},
    {"rows that begin anywhere", 64, 64, unaligned, false},
    {"ALiBi", 64, 64, alibi, false},
    {"softcap", 64, 64, softcap, false},
    {"a bias", 64, 64, bias, false},
    {"16 bits", 64, 64, bf16, false},
    {"no rows", 64, 64, no_rows, false},
};

static void fill(const example *x, fa_attention *a) {
  fa_attention_init(a);
  a->dtype = FA_F32;
  a->batch = BATCH;
  a->heads_q = HEADS;
  a->heads_kv = HEADS / 2;
  a->seqlen_q = ROWS;
  a->seqlen_k = KEYS;
  a->head_dim = x->head_dim;
  a->head_dim_v = x->head_dim_v;
  a->scale = 0.1;
  a->q = a->k = a->v = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = fa_strides_dense(ROWS, HEADS, x->head_dim);
  a->o_stride = fa_strides_dense(ROWS, HEADS, x->head_dim_v);
  a->k_stride = fa_strides_dense(KEYS, HEADS / 2, x->head_dim);
  a->v_stride = fa_strides_dense(KEYS, HEADS / 2, x->head_dim_v);
  a->lse_stride = (fa_strides){HEADS * ROWS, 1, ROWS};
  if (x->change) x->change(a);
}

static bool is_tf32(const fa_launch *l) {
  return strstr(l->kernel.name, "hopper_tf32_") != NULL;
}

static void check_launch(const example *x, const fa_plan *plan) {
  const fa_launch *l = &plan->launch[0];
  CHECK_MSG(plan->is_hopper && strcmp(plan->name, "hopper_forward") == 0, "%s: what the plan says of itself",
            x->name);
  CHECK_MSG(plan->block_m == 128 && plan->block_n == 64, "%s: %d x %d", x->name, plan->block_m,
            plan->block_n);
  CHECK_MSG(l->grid[0] == 3 && l->grid[1] == HEADS && l->grid[2] == BATCH, "%s: %u x %u x %u blocks", x->name,
            l->grid[0], l->grid[1], l->grid[2]);
}

static void test(const example *x, const fa_kernel_device *device) {
  static fa_plan plan;
  fa_attention a;
  fa_error err = {""};
  fill(x, &a);
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = &a, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  CHECK_MSG(fa_plan_make(&call, device, &plan, &err) == FA_OK, "%s: %s", x->name, err.text);
  const bool found = plan.n_launches == 1 && is_tf32(&plan.launch[0]),
             wanted = x->is_tf32 && device && device->hopper;
  CHECK_MSG(found == wanted, "%s: whose it is", x->name);
  if (found && wanted) check_launch(x, &plan);
}

/* ---- backward ---- */

static void fill_gradients(const example *x, fa_gradients *g) {
  fa_gradients_init(g);
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->do_stride = fa_strides_dense(ROWS, HEADS, x->head_dim_v);
  g->dq_stride = fa_strides_dense(ROWS, HEADS, x->head_dim);
  g->dk_stride = fa_strides_dense(KEYS, HEADS / 2, x->head_dim);
  g->dv_stride = fa_strides_dense(KEYS, HEADS / 2, x->head_dim_v);
}

/* prepare clears dQ, and the main kernel adds to it. */
static void check_backward_launches(const char *name, const fa_plan *plan) {
  const fa_launch *l = &plan->launch[1];
  CHECK_MSG(plan->is_hopper && plan->adds_dq && strcmp(plan->name, "hopper_backward") == 0,
            "%s: what the plan says of itself", name);
  CHECK_MSG(l->grid[0] == 4 && l->grid[1] == HEADS / 2 && l->grid[2] == BATCH, "%s: %u x %u x %u blocks",
            name, l->grid[0], l->grid[1], l->grid[2]);
}

static bool plan_backward(const char *name, const fa_attention *a, const fa_gradients *g,
                          const fa_kernel_device *device, fa_plan *plan) {
  fa_error err = {""};
  const fa_call call = {
      .kind = FA_CALL_BACKWARD, .a = a, .g = g, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  CHECK_MSG(fa_plan_make(&call, device, plan, &err) == FA_OK, "%s, backward: %s", name, err.text);
  return plan->n_launches == 2 && strstr(plan->launch[1].kernel.name, "hopper_tf32_backward_") != NULL;
}

static void test_backward(const example *x, const fa_kernel_device *device) {
  static fa_plan plan;
  fa_attention a;
  fa_gradients g;
  fill(x, &a);
  if (a.softcap > 0 || a.alibi_slopes) return; /* there is no backward pass of f32 */
  fill_gradients(x, &g);
  const bool wanted = x->is_tf32 && device && device->hopper;
  const bool found = plan_backward(x->name, &a, &g, device, &plan);
  CHECK_MSG(found == wanted, "%s: whose the backward pass is", x->name);
  if (found && wanted) check_backward_launches(x->name, &plan);
  if (!wanted) return;
  g.dq = memory + 4;
  CHECK_MSG(!plan_backward(x->name, &a, &g, device, &plan), "%s: rows of dQ that begin anywhere", x->name);
  g.dq = memory;
  a.deterministic = true;
  CHECK_MSG(!plan_backward(x->name, &a, &g, device, &plan), "%s: dQ in one order", x->name);
}

int main(void) {
  const fa_kernel_device sm_90a = {.max_shared_bytes = 227 << 10, .hopper = 132},
                         sm_90 = {.max_shared_bytes = 227 << 10};
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) {
    test(&examples[i], &sm_90a);
    test(&examples[i], &sm_90);
    test(&examples[i], NULL);
    test_backward(&examples[i], &sm_90a);
    test_backward(&examples[i], &sm_90);
    test_backward(&examples[i], NULL);
  }
  return check_done();
}
