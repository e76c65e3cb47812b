/* Cases of every family on the host kernels, portable ones or those for sm_90a, judged as `fa-verify run` judges them. An
 * input is the draws of a random case, so that it can say what `random` can (fuzz/inputs/draws.h). */
#include "fuzz/inputs/fuzzer.h"

#include "fuzz/inputs/draws.h"
#include "fuzz/inputs/judged_input.h"
#include "gpu/backend.h"

_Static_assert((int)FA_N_FAMILIES <= (int)FA_INPUT_KINDS, "a kind for each family");

static int kind_of(const fa_case *c, const fa_result *r) {
  (void)r;
  return (int)c->problem.family;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fa_judged_target portable = {&fa_input_families, "host", &fa_backend_host, NULL, kind_of},
                          hopper = {&fa_input_families, "host:hopper", &fa_backend_host, NULL, kind_of};
  fa_draws draws;
  fa_error err = {""};
  if (!hopper.backend_self && fa_backend_host.open("hopper", &hopper.backend_self, &err) != FA_OK) return 0;
  fa_draws_read(data, size, &draws);
  fa_judged_input_run(data, size, fa_draws_are_for_hopper(&draws) ? &hopper : &portable);
  return 0;
}
