/* Runs an input's case on the host kernels and judges it as `fa-verify run` does; shared by attention_fuzzer,
 * hopper_fuzzer and families_fuzzer.
 *
 * In addition to the kernels' edges, libFuzzer sees our own counters: which mask meets which tile residue in
 * which kind of kernel, and how close the worst error of each output came to its bound, so that inputs that
 * come closer are kept and mutated. */
#ifndef FA_FUZZ_INPUTS_JUDGED_INPUT_H
#define FA_FUZZ_INPUTS_JUDGED_INPUT_H

#include "fuzz/inputs/to_case.h"
#include "gpu/backend.h"
#include "report/result.h"

enum { FA_INPUT_KINDS = 5 };

typedef struct fa_judged_target {
  const fa_input_target *input;
  const char *name;                                     /* of the subject, as on the command line */
  const fa_backend *backend;                            /* the subject */
  void *backend_self;                                   /* its own; NULL: the defaults of `host` */
  int (*kind_of)(const fa_case *c, const fa_result *r); /* kind of kernel that ran, below FA_INPUT_KINDS */
} fa_judged_target;

/* Ends the process if it finds a bug. */
void fa_judged_input_run(const uint8_t *data, size_t size, const fa_judged_target *target);

#endif
