#include "fuzz/judging/data.h"

#include "cases/data/build.h"
#include "fuzz/judging/fill.h"

#include <stdio.h>
#include <sys/random.h>

bool fa_is_audited(void) {
  enum { AUDITS = 1000 };
  uint32_t x = 0;
  return getrandom(&x, sizeof x, 0) == sizeof x && x % AUDITS == 0;
}

typedef struct maker {
  fa_judge_machine *machine;
  fa_made_by by;
} maker;

static fa_tensor_bits fill(void *self, const fa_case *c, fa_tensors *set) {
  maker *to = self;
  fa_tensor_bits filled;
  fa_error why;
  const fa_status status = fa_judge_make_data(to->machine, c, FA_JUDGE_FILL_LEAST, set, &filled, &why);
  to->by = status != FA_OK ? FA_MADE_AFTER_GPU : filled ? FA_MADE_BY_GPU : FA_MADE_BY_CPU;
  return filled;
}

static fa_status audit(const fa_case *c, int n_threads, const fa_tensors *made, fa_error *err) {
  char where[200];
  fa_tensors cpu;
  fa_status status = fa_case_build_on(c, n_threads, &cpu, err);
  if (status != FA_OK) return status;
  if (!fa_tensors_inputs_equal(&cpu, made, where, sizeof where))
    status = fa_fail(err, FA_ERR_DEVICE, "the GPU made other data than the CPU: %s", where);
  fa_tensors_free(&cpu);
  return status;
}

fa_status fa_make_data(const fa_case *c, const fa_data_config *config, fa_tensors *out, fa_made_by *made,
                       fa_error *err) {
  maker to = {.machine = config->machine, .by = FA_MADE_BY_CPU};
  const fa_filler filler = {.self = &to, .fill = fill};
  fa_status status = fa_case_build_with(c, config->n_threads, to.machine ? &filler : NULL, out, err);
  *made = to.by;
  if (status != FA_OK || to.by != FA_MADE_BY_GPU || !(config->audit || fa_is_audited())) return status;
  status = audit(c, config->n_threads, out, err);
  if (status != FA_OK) fa_tensors_free(out);
  return status;
}
