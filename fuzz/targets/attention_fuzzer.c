/* Random cases on the host kernels, judged as `fa-verify run` judges them. */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/judged_input.h"

/* The kind of kernel that ran, by the problem's features. */
static int kind_of(const fa_case *c, const fa_result *r) {
  const fa_problem *p = &c->problem;
  (void)r;
  bool odd = false;
  for (int id = FA_T_Q; id < FA_T_COUNT; ++id)
    for (int axis = 0; axis < 3; ++axis) odd |= c->strides[id].gap[axis] % 8 || c->strides[id].offset % 8;
  const bool modified = p->softcap > 0 || p->alibi.present;
  return odd || p->return_softmax || (modified && p->dropout.p > 0) ? 4
         : p->dropout.p > 0                                         ? 3
         : modified                                                 ? 2
         : fa_problem_is_varlen(p)                                  ? 1
                                                                    : 0;
}

const bool fa_fuzzer_has_tape = false;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const fa_judged_target target = {&fa_input_attention, "host", &fa_backend_host, NULL, kind_of};
  fa_judged_input_run(data, size, &target);
  return 0;
}
