/* How deterministic backward calls add to dQ on sm_90a: in turns, by one accumulator and semaphores, or with accumulators of the
 * blocks' own; and of how many heads blocks are launched by turns. */
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include "gpu/kernels/params/hopper.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256)));

typedef struct example {
  int64_t head_dim, heads, seqlen;
  float dropout;
  const char *kernel;
  int turns, heads_by_turns;
} example;

static const example examples[] = {
    {64, 32, 8192, 0, "hopper_backward_bf16_64_ordered", 1, 2},
    {128, 16, 2048, 0, "hopper_backward_bf16_128_ordered", 1, 4},
    {192, 10, 8192, 0, "hopper_backward_pair_bf16_192_ordered", 1, 1},
    {256, 8, 8192, 0, "hopper_backward_pair_bf16_256_ordered", 1, 1},
    {256, 8, 16384, 0, "hopper_backward_pair_bf16_256_ordered", 1, 0},
    {256, 8, 2048, 0, "hopper_backward_pair_bf16_256_ordered", 1, 3},
    {192, 10, 2048, 0, "hopper_backward_pair_bf16_192_ordered", 1, 1}, /* four do not divide ten */
    {256, 8, 8192, 0.1f, "hopper_backward_pair_bf16_256_dropout", 0, 0},
};

static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .hopper = 132};

static void check_launch(const example *x, const fa_launch *l) {
  const fa_backward_params *p = &((const fa_hopper_backward_params *)l->params)->b;
  const unsigned blocks = (unsigned)x->seqlen / (x->head_dim > 128 ? 64 : 128);
  CHECK_MSG(strcmp(l->kernel.name, x->kernel) == 0, "%s, not %s", l->kernel.name, x->kernel);
  CHECK_MSG(!p->dq_semaphore == !x->turns, "%s: semaphores", x->kernel);
  CHECK_MSG(!x->turns || p->n_splits == 1, "%s: %d accumulators", x->kernel, p->n_splits);
  CHECK_MSG(p->heads_by_turns == x->heads_by_turns, "%s, %d keys: 2^%d heads by turns", x->kernel,
            (int)x->seqlen, p->heads_by_turns);
  CHECK_MSG(x->turns ? l->grid[0] == blocks : l->grid[0] == 2 * (unsigned)p->n_splits, "%s: %u blocks",
            x->kernel, l->grid[0]);
}

static void test(const example *x) {
  static fa_plan plan;
  fa_attention a;
  fa_gradients g;
  fa_error err = {""};
  fa_attention_init(&a);
  a.dtype = FA_BF16;
  a.batch = 2;
  a.heads_q = a.heads_kv = x->heads;
  a.seqlen_q = a.seqlen_k = x->seqlen;
  a.head_dim = x->head_dim;
  a.scale = 0.1;
  a.dropout_p = x->dropout;
  a.deterministic = true;
  a.q = a.k = a.v = a.o = memory;
  a.lse = (float *)memory;
  a.q_stride = a.k_stride = a.v_stride = a.o_stride = fa_strides_dense(x->seqlen, x->heads, x->head_dim);
  a.lse_stride = (fa_strides){x->heads * x->seqlen, 1, x->seqlen};
  fa_gradients_init(&g);
  g.d_o = g.dq = g.dk = g.dv = memory;
  g.do_stride = g.dq_stride = g.dk_stride = g.dv_stride = a.q_stride;
  const fa_call call = {
      .kind = FA_CALL_BACKWARD, .a = &a, .g = &g, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  REQUIRE(fa_plan_make(&call, &device, &plan, &err) == FA_OK);
  const fa_launch *found = NULL;
  for (int i = 0; i < plan.n_launches; ++i)
    if (strncmp(plan.launch[i].kernel.name, "hopper_backward", 15) == 0) found = &plan.launch[i];
  REQUIRE(found);
  check_launch(x, found);
}

int main(void) {
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) test(&examples[i]);
  return check_done();
}
