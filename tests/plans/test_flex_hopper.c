/* Which kernel has an expression on sm_90a: by the larger of two head dims, by whether sequences have lengths of their own, and
 * backward by whether the gradient of a captured buffer is wanted. */
#include "gpu/kernels/params/flex_lists.h"
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256)));

typedef enum lengths { FIXED, PACKED, USED, PADDED } lengths;

typedef struct example {
  int64_t head_dim, head_dim_v;
  lengths lengths;
  const char *kernel;
  int64_t rows; /* 0: as many as keys */
} example;

static const example examples[] = {
    {8, 0, FIXED, "hopper_flex_bf16_64", 0},
    {64, 0, FIXED, "hopper_flex_bf16_64", 0},
    {64, 72, FIXED, "hopper_flex_bf16_128", 0},
    {96, 0, FIXED, "hopper_flex_bf16_128", 0},
    {128, 0, FIXED, "hopper_flex_bf16_128", 0},
    {136, 0, FIXED, "hopper_flex_bf16_192", 0},
    {192, 0, FIXED, "hopper_flex_bf16_192", 0},
    {192, 128, FIXED, "hopper_flex_bf16_192", 0},
    {16, 192, FIXED, "hopper_flex_bf16_192", 0},
    {200, 0, FIXED, "hopper_flex_bf16_256", 0},
    {256, 0, FIXED, "hopper_flex_bf16_256", 0},
    {256, 64, FIXED, "hopper_flex_bf16_256", 0},
    {264, 0, FIXED, "flex_forward_bf16_128", 0},
    {256, 264, FIXED, "flex_forward_bf16_128", 0},
    {64, 0, PACKED, "hopper_flex_bf16_64_varlen", 0},
    {96, 0, USED, "hopper_flex_bf16_128_varlen", 0},
    {192, 128, PACKED, "hopper_flex_bf16_192_varlen", 0},
    {192, 0, PADDED, "hopper_flex_bf16_192_varlen", 0},
    {256, 0, USED, "hopper_flex_bf16_256_varlen", 0},
    {64, 0, USED, "hopper_flex_bf16_64_varlen", 17},
    {64, 0, USED, "flex_forward_bf16_64", 16},
    {64, 0, PACKED, "flex_forward_bf16_64", 16},
    {64, 0, FIXED, "hopper_flex_bf16_64", 16},
};

static void fill(fa_attention *a, const example *x) {
  const int64_t widest = x->head_dim_v > x->head_dim ? x->head_dim_v : x->head_dim;
  fa_attention_init(a);
  a->dtype = FA_BF16;
  a->seqlen_k = 4096;
  a->seqlen_q = x->rows ? x->rows : a->seqlen_k;
  a->head_dim = x->head_dim;
  a->head_dim_v = x->head_dim_v;
  a->scale = 0.1;
  a->q = a->k = a->v = a->o = memory;
  a->lse = (float *)memory;
  a->q_stride = a->k_stride = a->v_stride = a->o_stride = fa_strides_dense(4096, 1, widest);
  a->lse_stride = (fa_strides){4096, 1, 4096};
  if (x->lengths == PACKED) {
    a->cu_seqlens_q = a->cu_seqlens_k = (int32_t *)memory;
    a->total_q = a->total_k = 4096;
  }
  if (x->lengths == USED) a->seqused_k = (int32_t *)memory;
  if (x->lengths == PADDED) a->leftpad_k = (int32_t *)memory;
}

/* Backward; `kernel` is the first one with the expression. */
typedef struct gradient_example {
  example of;
  bool ordered, learnt; /* deterministic; with the buffer's gradient */
  unsigned cluster;
} gradient_example;

static const gradient_example gradients[] = {
    {{32, 0, FIXED, "hopper_flex_backward_bf16_32", 0}, false, false, 1},
    {{8, 32, FIXED, "hopper_flex_backward_bf16_32_varlen", 0}, true, true, 1},
    {{16, 0, PACKED, "hopper_flex_backward_bf16_32_varlen", 0}, false, false, 1},
    {{64, 0, FIXED, "hopper_flex_backward_bf16_64", 0}, false, true, 1},
    {{40, 0, USED, "hopper_flex_backward_bf16_64_varlen", 0}, false, true, 1},
    {{64, 8, PACKED, "hopper_flex_backward_bf16_64_varlen", 0}, true, false, 1},
    {{72, 0, FIXED, "hopper_flex_backward_bf16_96", 0}, false, true, 1},
    {{96, 0, FIXED, "hopper_flex_backward_bf16_96_varlen", 0}, true, false, 1},
    {{80, 96, PACKED, "hopper_flex_backward_bf16_96_varlen", 0}, false, true, 1},
    {{96, 64, FIXED, "hopper_flex_backward_bf16_128", 0}, false, false, 1},
    {{104, 0, FIXED, "hopper_flex_backward_bf16_128", 0}, false, false, 1},
    {{128, 64, FIXED, "hopper_flex_backward_bf16_128_ordered", 0}, true, true, 1},
    {{128, 0, PACKED, "hopper_flex_backward_bf16_128_varlen", 0}, false, false, 1},
    {{128, 0, PADDED, "hopper_flex_backward_bf16_128_varlen", 0}, true, true, 1},
    {{136, 0, FIXED, "hopper_flex_backward_pair_bf16_192", 0}, false, false, 2},
    {{192, 128, FIXED, "hopper_flex_backward_pair_bf16_192", 0}, false, false, 2},
    {{160, 0, FIXED, "hopper_flex_backward_pair_bf16_192_ordered", 0}, true, false, 2},
    {{64, 200, FIXED, "hopper_flex_backward_pair_bf16_256", 0}, false, false, 2},
    {{256, 0, FIXED, "hopper_flex_backward_pair_bf16_256_ordered", 0}, true, false, 2},
    {{192, 0, FIXED, "flex_backward_bf16_keys", 0}, false, true, 0},
    {{256, 0, FIXED, "flex_backward_bf16_keys", 0}, true, true, 0},
    {{264, 0, FIXED, "flex_backward_bf16_keys", 0}, false, false, 0},
    {{256, 0, USED, "hopper_flex_backward_pair_bf16_256_varlen", 0}, false, false, 2},
    {{192, 0, PACKED, "hopper_flex_backward_pair_bf16_192_varlen", 0}, false, false, 2},
    {{192, 0, PADDED, "hopper_flex_backward_pair_bf16_192_varlen", 0}, true, false, 2},
    {{192, 0, PACKED, "flex_backward_bf16_keys", 0}, false, true, 0},
};

static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .compiles = 1, .hopper = 132};

static const char *kernel_of(const example *x, const fa_flex *flex) {
  static fa_plan plan;
  fa_attention a;
  fill(&a, x);
  a.flex = flex;
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = &a, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  fa_error err = {""};
  CHECK_MSG(fa_plan_make(&call, &device, &plan, &err) == FA_OK, "%s", err.text);
  return plan.launch[plan.n_launches - 1].kernel.name;
}

/* The main launch, and in *tiles that of its lists; NULL: there is none. */
static const fa_launch *main_of(const gradient_example *x, const fa_flex *flex, fa_plan *plan,
                                const fa_launch **tiles) {
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  fill(&a, &x->of);
  a.flex = flex;
  a.deterministic = x->ordered;
  fa_gradients_init(&g);
  g.d_o = g.dq = g.dk = g.dv = memory;
  g.do_stride = g.dq_stride = g.dk_stride = g.dv_stride = a.q_stride;
  g.dbuffer[0] = x->learnt ? memory : NULL;
  const fa_call call = {
      .kind = FA_CALL_BACKWARD, .a = &a, .g = &g, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  CHECK_MSG(fa_plan_make(&call, &device, plan, &err) == FA_OK, "%s", err.text);
  *tiles = NULL;
  for (int i = 0; i < plan->n_launches; ++i) {
    const fa_launch *l = &plan->launch[i];
    if (strcmp(l->kernel.name, "flex_lists_tiles") == 0) *tiles = l;
    if (l->mods == FA_MODS_DERIVATIVE) return l;
  }
  return NULL;
}

/* A cluster has one list and, in a fixed order, one accumulator: there are never more than pairs of key blocks. */
static void check_clusters(const gradient_example *x, const fa_launch *l, const fa_launch *tiles) {
  const fa_flex_lists_params *lists = tiles->params;
  const unsigned blocks = 4096 / 64;
  CHECK_MSG(l->cluster == x->cluster, "%s: clusters of %u", l->kernel.name, l->cluster);
  if (x->cluster != 2) return;
  CHECK_MSG(lists->by_rows && lists->tile_m == 64 && lists->tile_n == 128 &&
                lists->n_tiles == (int)blocks / 2,
            "%s: lists of %d by %d", l->kernel.name, lists->tile_m, lists->tile_n);
  CHECK_MSG(x->ordered ? l->grid[0] % 2 == 0 && l->grid[0] <= blocks : l->grid[0] == blocks, "%s: %u blocks",
            l->kernel.name, l->grid[0]);
}

static void test_gradients(const fa_flex *flex) {
  static fa_plan plan;
  for (size_t i = 0; i < sizeof gradients / sizeof *gradients; ++i) {
    const gradient_example *x = &gradients[i];
    const fa_launch *tiles, *l = main_of(x, flex, &plan, &tiles);
    REQUIRE(l && tiles);
    CHECK_MSG(strcmp(l->kernel.name, x->of.kernel) == 0, "gradient %zu: %s, not %s", i, l->kernel.name,
              x->of.kernel);
    check_clusters(x, l, tiles);
  }
}

int main(void) {
  fa_flex flex;
  fa_flex_program *program = NULL;
  fa_error err = {""};
  const fa_flex_buffer x = {"x", FA_F32, 1, {1}, NULL};
  REQUIRE(fa_flex_prepare("score * x[0]", NULL, &x, 1, &program, &err) == FA_OK);
  fa_flex_init(&flex);
  flex.program = program;
  flex.buffer[0] = memory;
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) {
    const example *x = &examples[i];
    const char *got = kernel_of(x, &flex);
    CHECK_MSG(strcmp(got, x->kernel) == 0, "head dims %d and %d, lengths %d: %s, not %s", (int)x->head_dim,
              (int)x->head_dim_v, (int)x->lengths, got, x->kernel);
  }
  flex.q_block = flex.kv_block = 128;
  flex.list_batch = flex.list_heads = 1;
  flex.kv_num_blocks = flex.kv_indices = (int32_t *)memory;
  test_gradients(&flex);
  fa_flex_free(program);
  return check_done();
}
