/* Which kernel makes a bias's gradient on sm_90a that several sequences or heads share, and in which order of the grid: blocks that
 * add to the same sums are side by side. */
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include "gpu/kernels/params/flash_backward_grids.h"
#include "gpu/kernels/params/hopper.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256))), gradient[256] __attribute__((aligned(256)));

enum { HEADS = 12 };

typedef struct example {
  const char *name;
  int64_t batch, kv_heads, keys;
  bool of_each_sequence, of_each_head, deterministic;
  int order; /* -1: a portable kernel's */
  unsigned grid[3];
} example;

#define MOST (65535 * 128)
static const example examples[] = {
    {"each its own", 3, 2, 1000, true, true, false, FA_GRID_KEYS_FIRST, {8, 2, 3}},
    {"shared by sequences", 3, 2, 1000, false, true, false, FA_GRID_BATCH_FIRST, {3, 8, 2}},
    {"shared by two sequences", 2, 2, 1000, false, true, false, FA_GRID_BATCH_FIRST, {2, 8, 2}},
    {"shared by sequences, more heads", 3, 4, 1000, false, true, false, FA_GRID_BATCH_FIRST, {3, 8, 4}},
    {"shared by heads", 3, 2, 1000, true, false, false, FA_GRID_HEADS_FIRST, {2, 8, 3}},
    {"shared by both", 3, 2, 1000, false, false, false, FA_GRID_BATCH_FIRST, {3, 8, 2}},
    {"shared by both, more heads", 3, 4, 1000, false, false, false, FA_GRID_HEADS_FIRST, {4, 8, 3}},
    {"shared by the heads of one sequence", 1, 2, 1000, false, false, false, FA_GRID_HEADS_FIRST, {2, 8, 1}},
    {"shared within blocks", 3, 1, 1000, true, false, false, FA_GRID_KEYS_FIRST, {8, 1, 3}},
    {"the most blocks of a second axis", 3, 2, MOST, false, true, false, FA_GRID_BATCH_FIRST, {3, 65535, 2}},
    {"and one more", 3, 2, MOST + 8, false, true, false, FA_GRID_KEYS_FIRST, {65536, 2, 3}},
    {"in order", 3, 2, 1000, false, true, true, -1, {0, 0, 0}},
};

static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .hopper = 132};

static void fill(const example *x, fa_attention *a, fa_gradients *g) {
  const int64_t rows = 300, pairs = rows * x->keys;
  fa_attention_init(a);
  a->dtype = FA_BF16;
  a->batch = x->batch;
  a->heads_q = HEADS;
  a->heads_kv = x->kv_heads;
  a->seqlen_q = rows;
  a->seqlen_k = x->keys;
  a->head_dim = 64;
  a->scale = 0.1;
  a->deterministic = x->deterministic;
  a->q = a->k = a->v = a->o = memory;
  a->bias = memory;
  a->lse = (float *)memory;
  a->q_stride = a->o_stride = fa_strides_dense(rows, HEADS, 64);
  a->k_stride = a->v_stride = fa_strides_dense(x->keys, x->kv_heads, 64);
  a->lse_stride = (fa_strides){HEADS * rows, 1, rows};
  a->bias_stride =
      (fa_strides){x->of_each_sequence ? HEADS * pairs : 0, x->keys, x->of_each_head ? pairs : 0};
  fa_gradients_init(g);
  g->d_o = g->dq = g->dk = g->dv = memory;
  g->dbias = gradient;
  g->do_stride = g->dq_stride = a->q_stride;
  g->dk_stride = g->dv_stride = a->k_stride;
  g->dbias_stride = a->bias_stride;
}

/* Where a map's tensor begins. */
static const void *base_of(const fa_tensor_map *map) {
  fa_tensor_box box;
  memcpy(&box, map, sizeof box);
  return box.base;
}

static void check_launch(const example *x, const fa_launch *l) {
  const fa_hopper_biased_backward_params *all = l->params;
  const fa_backward_params *p = &all->call.b;
  const bool is_sum = !x->of_each_sequence || !x->of_each_head;
  CHECK_MSG(p->grid_order == x->order, "%s: order %d", x->name, p->grid_order);
  CHECK_MSG(memcmp(l->grid, x->grid, sizeof x->grid) == 0, "%s: %u x %u x %u blocks", x->name, l->grid[0],
            l->grid[1], l->grid[2]);
  CHECK_MSG(!p->dbias_accum == !is_sum && !p->dbias == is_sum && p->dbias_strips == is_sum,
            "%s: where dS goes", x->name);
  CHECK_MSG(l->writes == (FA_WRITES(FA_T_DK) | FA_WRITES(FA_T_DV) | FA_WRITES_WORKSPACE |
                          (is_sum ? 0 : FA_WRITES(FA_T_DBIAS))),
            "%s: what it may write", x->name);
  CHECK_MSG(base_of(&all->bias) == memory, "%s: the bias's map", x->name);
  /* a map that nobody uses is of something all the same, which a device asks of it */
  CHECK_MSG(base_of(&all->dbias) == (is_sum ? memory : gradient), "%s: the gradient's map", x->name);
}

static void test(const example *x) {
  static fa_plan plan;
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  fill(x, &a, &g);
  const fa_call call = {
      .kind = FA_CALL_BACKWARD, .a = &a, .g = &g, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  REQUIRE(fa_plan_make(&call, &device, &plan, &err) == FA_OK);
  const fa_launch *found = NULL;
  for (int i = 0; i < plan.n_launches; ++i)
    if (strcmp(plan.launch[i].kernel.name, "hopper_backward_bf16_64_biased") == 0) found = &plan.launch[i];
  CHECK_MSG(!found == (x->order < 0), "%s: whose it is", x->name);
  if (found && x->order >= 0) check_launch(x, found);
}

int main(void) {
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) test(&examples[i]);
  return check_done();
}
