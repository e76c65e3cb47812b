/* Kernels for sm_90a with larger key blocks are for calls whose rows see many keys, not for those with many keys. */
#include "gpu/plan/make.h"
#include "tests/support/check.h"

#include <string.h>

/* Addresses that are never dereferenced. */
static char memory[256] __attribute__((aligned(256)));

typedef struct example {
  int64_t keys, left, right; /* -1: no bound */
  bool is_long;
} example;

static const example examples[] = {
    {4095, -1, -1, false},   {4096, -1, -1, true},      {8192, -1, 0, true},
    {8192, 1024, 0, false},  {8192, 4094, 0, false},    {8192, 4095, 0, true},
    {8192, 4000, 94, false}, {8192, 4000, 95, true},    {8192, 1024, -1, true},
    {8192, 0, 8191, true},   {4095, 4000, 4000, false}, {4096, INT32_MAX, INT32_MAX, true},
};

static const char *kernel_of(const example *x) {
  static fa_plan plan;
  static const fa_kernel_device device = {.max_shared_bytes = 227 << 10, .compiles = 1, .hopper = 132};
  fa_attention a;
  fa_attention_init(&a);
  a.dtype = FA_BF16;
  a.seqlen_q = 512;
  a.seqlen_k = x->keys;
  a.head_dim = 128;
  a.scale = 0.1;
  a.window_left = x->left;
  a.window_right = x->right;
  a.q = a.k = a.v = a.o = memory;
  a.lse = (float *)memory;
  a.q_stride = a.o_stride = fa_strides_dense(512, 1, 128);
  a.k_stride = a.v_stride = fa_strides_dense(x->keys, 1, 128);
  a.lse_stride = (fa_strides){512, 1, 512};
  const fa_call call = {
      .kind = FA_CALL_FORWARD, .a = &a, .n_processors = FA_PLAN_PROCESSORS, .workspace = memory};
  fa_error err = {""};
  CHECK_MSG(fa_plan_make(&call, &device, &plan, &err) == FA_OK, "%s", err.text);
  return plan.launch[0].kernel.name;
}

int main(void) {
  for (size_t i = 0; i < sizeof examples / sizeof *examples; ++i) {
    const example *x = &examples[i];
    const char *wanted = x->is_long ? "hopper_forward_bf16_128_long" : "hopper_forward_bf16_128",
               *got = kernel_of(x);
    CHECK_MSG(strcmp(got, wanted) == 0, "%d keys, window %d, %d: %s, not %s", (int)x->keys, (int)x->left,
              (int)x->right, got, wanted);
  }
  return check_done();
}
