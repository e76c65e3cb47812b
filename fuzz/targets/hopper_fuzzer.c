/* Random cases on the host's kernels for sm_90a, judged as `fa-verify run --backend host:hopper` judges them.
 */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/judged_input.h"
#include "gpu/backend.h"

#include <string.h>

static bool is_hopper(const char *kernel) {
  return strncmp(kernel, "hopper_", 7) == 0;
}

/* The portable kernels ran what the sm_90a kernels cannot do. */
static int kind_of(const fa_case *c, const fa_result *r) {
  const fa_problem *p = &c->problem;
  if (!is_hopper(r->kernel) && !is_hopper(r->backward_kernel)) return 0;
  if (p->softcap > 0 || p->alibi.present || p->dropout.p > 0) return 4;
  if (!is_hopper(r->backward_kernel)) return 1;
  return p->head_dim <= 128 ? 2 : 3;
}

const bool fa_fuzzer_has_tape = false;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_judged_target target = {&fa_input_hopper, "host:hopper", &fa_backend_host, NULL, kind_of};
  fa_error err = {""};
  if (!target.backend_self && fa_backend_host.open("hopper", &target.backend_self, &err) != FA_OK) return 0;
  fa_judged_input_run(data, size, &target);
  return 0;
}
