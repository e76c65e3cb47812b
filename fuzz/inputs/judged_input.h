/* An input's case on the host kernels, judged as `fa-verify run` judges it: what attention_fuzzer and
 * hopper_fuzzer share.
 *
 * Besides the kernels' edges libFuzzer sees counters of our own: which mask meets which tile residue in which
 * kind of kernel, and how near the worst error of each output came to its bound, so that inputs that come
 * nearer are kept and bred from. */
#ifndef FA_FUZZ_INPUTS_JUDGED_INPUT_H
#define FA_FUZZ_INPUTS_JUDGED_INPUT_H

#include "fuzz/inputs/to_case.h"
#include "report/result.h"

enum { FA_INPUT_KINDS = 5 };

typedef struct fa_judged_target {
  const fa_input_target *input;
  const char *backend;                                  /* as on the command line */
  void *backend_self;                                   /* of the host backend; NULL: its defaults */
  int (*kind_of)(const fa_case *c, const fa_result *r); /* of what ran, below FA_INPUT_KINDS */
} fa_judged_target;

/* Ends the process at a finding. */
void fa_judged_input_run(const uint8_t *data, size_t size, const fa_judged_target *target);

#endif
