/* Which kernel has an expression on sm_90a: by the larger of two head dims, and by whether sequences have lengths of their own. */
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

static const char *kernel_of(const example *x, const fa_flex *flex) {
  static fa_plan plan;
  static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .compiles = 1, .hopper = 132};
  fa_attention a;
  fill(&a, x);
  a.flex = flex;
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = &a, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  fa_error err = {""};
  CHECK_MSG(fa_plan_make(&call, &device, &plan, &err) == FA_OK, "%s", err.text);
  return plan.launch[plan.n_launches - 1].kernel.name;
}

int main(void) {
  fa_flex flex;
  fa_flex_program *program = NULL;
  fa_error err = {""};
  REQUIRE(fa_flex_prepare("score * 2", NULL, NULL, 0, &program, &err) == FA_OK);
  fa_flex_init(&flex);
  flex.program = program;
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) {
    const example *x = &examples[i];
    const char *got = kernel_of(x, &flex);
    CHECK_MSG(strcmp(got, x->kernel) == 0, "head dims %d and %d, lengths %d: %s, not %s", (int)x->head_dim,
              (int)x->head_dim_v, (int)x->lengths, got, x->kernel);
  }
  fa_flex_free(program);
  return check_done();
}
