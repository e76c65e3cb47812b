/* Whether what two judges say of one call can both be true. */
#include "fuzz/judging/two.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const fa_verdict *same_tensor(const fa_result *r, const fa_verdict *v) {
  for (int i = 0; i < r->n_verdicts; ++i)
    if (r->verdict[i].id == v->id) return &r->verdict[i];
  return NULL;
}

static fa_status disagree(const fa_verdict *machine, const fa_verdict *cpu, fa_error *err) {
  char at[64] = "";
  const fa_point *worst = machine->n_worst ? machine->worst : cpu->n_worst ? cpu->worst : NULL;
  for (int a = 0; worst && a < machine->rank; ++a)
    snprintf(at + strlen(at), sizeof at - strlen(at), "%s%lld", a ? "," : "", (long long)worst->index[a]);
  return fa_fail(
      err, FA_ERR_DEVICE,
      "the judges disagree: %s[%s], on the GPU %lld bad and r=%.6g, on the CPU %lld bad and r=%.6g%s",
      fa_tensor_id_name(machine->id), at, (long long)machine->bad, machine->worst_ratio, (long long)cpu->bad,
      cpu->worst_ratio, cpu->vacuous[0] ? ", and vacuous" : "");
}

/* Bounds are made of numbers of float32, whose smallest are coarse. */
static bool has_coarse_bound(const fa_verdict *v) {
  return v->n_worst > 0 && v->worst[0].bound < FA_RATIO_COARSE;
}

/* NaN counts as far apart. */
static double ratios_apart(const fa_verdict *x, const fa_verdict *y) {
  if (has_coarse_bound(x) || has_coarse_bound(y)) return 0;
  if (isnan(x->worst_ratio) || isnan(y->worst_ratio)) return INFINITY;
  const double a = fmax(x->worst_ratio, FA_RATIO_NOISE), b = fmax(y->worst_ratio, FA_RATIO_NOISE);
  const double apart = fabs(a - b) / fmax(a, b);
  return apart >= 0 ? apart : INFINITY;
}

fa_status fa_judges_agree(const fa_judge_trial *t, fa_result *cpu, fa_error *err) {
  for (int i = 0; i < t->n; ++i) {
    const fa_verdict *one = &t->verdict[i], *other = same_tensor(cpu, one);
    if (!other) continue;
    if (t->passed && (other->fail || other->vacuous[0])) return disagree(one, other, err);
    if (t->wrong[i] && other->bad == 0) return disagree(one, other, err);
    if (!t->passed) continue;
    const double apart = ratios_apart(one, other);
    if (apart > FA_RATIOS_APART) return disagree(one, other, err);
    cpu->judged.apart = fmax(cpu->judged.apart, apart);
  }
  return FA_OK;
}
