/* What kernels with expressions are compiled without: nothing that the call has, and all that it has not. And which they are, where
 * that depends on the time that they take to compile. */
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[1 << 16] __attribute__((aligned(256)));

static const unsigned all = FA_HAS_SOFTCAP | FA_HAS_ALIBI | FA_HAS_BIAS | FA_HAS_DBIAS | FA_HAS_WINDOW |
                            FA_HAS_LENGTHS | FA_HAS_ALIGNED | FA_HAS_UNALIGNED | FA_HAS_BLOCKS |
                            FA_HAS_SINKS | FA_HAS_WIDE;

typedef struct planned {
  fa_attention a;
  fa_gradients g;
  fa_flex flex;
} planned;

static void fill(planned *p, fa_flex_program *program) {
  fa_attention_init(&p->a);
  fa_gradients_init(&p->g);
  fa_flex_init(&p->flex);
  p->flex.program = program;
  p->a.flex = &p->flex;
  p->a.seqlen_q = p->a.seqlen_k = 64;
  p->a.head_dim = 40;
  p->a.scale = 0.1;
  p->a.q = p->a.k = p->a.v = p->a.o = memory;
  p->a.lse = (float *)memory;
  p->a.q_stride = p->a.k_stride = p->a.v_stride = p->a.o_stride = fa_strides_dense(64, 1, 40);
  p->a.lse_stride = (fa_strides){64, 1, 64};
  p->g.d_o = p->g.dq = p->g.dk = p->g.dv = memory;
  p->g.do_stride = p->g.dq_stride = p->g.dk_stride = p->g.dv_stride = p->a.q_stride;
}

/* What the kernels of the call that have its expressions have no code for; they agree but for the gradient of the bias,
 * which one of a backward's makes. */
static unsigned lacks(const planned *p, bool backward) {
  static fa_plan plan;
  const fa_call call = {.kind = backward ? FA_CALL_BACKWARD : FA_CALL_FORWARD,
                        .a = &p->a,
                        .g = &p->g,
                        .n_processors = FA_PLAN_PROCESSORS,
                        .workspace = memory};
  fa_error err = {""};
  unsigned common = all;
  int n = 0;
  const fa_status status = fa_plan_make(&call, NULL, &plan, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  for (int i = 0; status == FA_OK && i < plan.n_launches; ++i) {
    if (!plan.launch[i].mods) continue;
    common &= plan.launch[i].lacks;
    ++n;
  }
  CHECK(n == (backward ? 2 : 1));
  return common;
}

static void check_both(const planned *p, unsigned has, const char *what) {
  for (int backward = 0; backward < 2; ++backward) {
    const unsigned got = all & ~lacks(p, backward);
    CHECK_MSG(got == has, "%s, %s: it has %u, its kernels have %u", what, backward ? "backward" : "forward",
              has, got);
  }
}

static void test_each(fa_flex_program *program) {
  planned p;
  fill(&p, program);
  check_both(&p, FA_HAS_ALIGNED, "nothing");
  p.a.softcap = 30;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_SOFTCAP, "softcap");
  fill(&p, program);
  p.a.alibi_slopes = (float *)memory;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_ALIBI, "ALiBi");
  fill(&p, program);
  p.a.window_right = 0;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_WINDOW, "causal");
  fill(&p, program);
  p.a.window_left = 3;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_WINDOW, "a window");
  fill(&p, program);
  p.a.seqused_k = (int32_t *)memory;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_LENGTHS, "lengths");
  fill(&p, program);
  p.a.q = memory + 2;
  check_both(&p, FA_HAS_UNALIGNED, "rows that begin on two bytes");
}

static void set_lists(planned *p) {
  p->flex.q_block = p->flex.kv_block = 64;
  p->flex.list_batch = p->flex.list_heads = 1;
  p->flex.kv_num_blocks = p->flex.kv_indices = (int32_t *)memory;
}

static void test_blocks_and_sinks(fa_flex_program *program) {
  planned p;
  fill(&p, program);
  set_lists(&p);
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_BLOCKS, "lists of blocks");
  fill(&p, program);
  p.a.sinks = (float *)memory;
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_SINKS, "sinks");
}

/* The last head dim that is not wide, the first that is, and that of V alone. */
static void test_wide(fa_flex_program *program) {
  static const int64_t dims[3][2] = {{FA_NARROW, 0}, {FA_NARROW + 8, 0}, {40, FA_NARROW + 8}};
  for (int i = 0; i < 3; ++i) {
    planned p;
    fill(&p, program);
    p.a.head_dim = dims[i][0];
    p.a.head_dim_v = dims[i][1];
    p.a.q_stride = p.a.k_stride = p.a.v_stride = p.a.o_stride = fa_strides_dense(64, 1, FA_NARROW + 8);
    p.g.do_stride = p.g.dq_stride = p.g.dk_stride = p.g.dv_stride = p.a.q_stride;
    check_both(&p, FA_HAS_ALIGNED | (i ? FA_HAS_WIDE : 0), "head dims");
  }
}

static void test_bias(fa_flex_program *program) {
  planned p;
  fill(&p, program);
  p.a.bias = memory;
  p.a.bias_stride = (fa_strides){0, 64, 0};
  check_both(&p, FA_HAS_ALIGNED | FA_HAS_BIAS, "a bias");
  p.a.bias_stride = (fa_strides){4096, 64, 4096};
  p.g.dbias = memory;
  p.g.dbias_stride = p.a.bias_stride;
  CHECK((all & ~lacks(&p, true)) == (FA_HAS_ALIGNED | FA_HAS_BIAS | FA_HAS_DBIAS));
}

/* Kernels without expressions are for all calls: compiled for each they would be many, and are few. */
static void test_lists_alone(void) {
  planned p;
  fill(&p, NULL);
  set_lists(&p);
  check_both(&p, all, "lists alone");
}

static const char *kernels_of(fa_flex_program *program) {
  static fa_plan plan;
  static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .compiles = 1, .hopper = 132};
  planned p;
  fill(&p, program);
  p.a.head_dim = 64;
  p.a.q_stride = p.a.k_stride = p.a.v_stride = p.a.o_stride = fa_strides_dense(64, 1, 64);
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = &p.a, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  fa_error err = {""};
  CHECK_MSG(fa_plan_make(&call, &device, &plan, &err) == FA_OK, "%s", err.text);
  return plan.name;
}

/* Long ones take the kernels for sm_90a half a minute of compiling. */
static void test_long(fa_flex_program *program) {
  char text[400] = "score";
  fa_flex_program *longer = NULL;
  fa_error err = {""};
  CHECK(strcmp(kernels_of(program), "hopper_flex_forward") == 0);
  for (int i = 0; i < 32; ++i) strcat(text, " + h");
  REQUIRE(fa_flex_prepare(text, NULL, NULL, 0, &longer, &err) == FA_OK);
  CHECK(strcmp(kernels_of(longer), "flex_forward") == 0);
  fa_flex_free(longer);
}

int main(void) {
  fa_flex_program *program = NULL;
  fa_error err = {""};
  REQUIRE(fa_flex_prepare("score * 2", NULL, NULL, 0, &program, &err) == FA_OK);
  test_each(program);
  test_blocks_and_sinks(program);
  test_wide(program);
  test_bias(program);
  test_lists_alone();
  test_long(program);
  fa_flex_free(program);
  return check_done();
}
