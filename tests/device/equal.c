#include "tests/device/equal.h"

#include "cases/data/build.h"
#include "cases/tensors/table.h"
#include "fuzz/generate/draw.h"
#include "gpu/backend.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static void note(two_judges *to, fa_tensor_id id, int64_t e, const char *what, double cpu, double machine) {
  if (to->wrong++ == 0)
    snprintf(to->first_wrong, sizeof to->first_wrong, "%s[%lld]: %s %.17g on the CPU, %.17g on the machine",
             fa_tensor_id_name(id), (long long)e, what, cpu, machine);
}

static bool same_class(double x, double y) {
  return isnan(x) ? isnan(y) : isinf(x) ? x == y : isfinite(y);
}

/* Bounds are sums in float32 of at most n terms each, in units that are at most 2^12 here: subnormal ones lose whole numbers
 * of the smallest. */
static void compare_bound(two_judges *to, fa_tensor_id id, int64_t e, const char *what, double cpu,
                          double machine, double whole, int64_t n) {
  if (!same_class(cpu, machine)) {
    note(to, id, e, what, cpu, machine);
    return;
  }
  if (!isfinite(cpu)) return;
  const double off = fabs(cpu - machine), lost = (double)n * 0x1p-136,
               most = (0x1p-16 + (double)n * 0x1p-24) * whole + lost;
  if (off > lost && off / whole > to->bound) to->bound = off / whole;
  if (off > most) note(to, id, e, what, cpu, machine);
}

static void compare_want(two_judges *to, fa_tensor_id id, const fa_want *cpu, const fa_want *machine,
                         int64_t n) {
  REQUIRE(cpu->n == machine->n);
  const int64_t width = cpu->n > 0 ? cpu->shape[cpu->rank - 1] : 1;
  for (int64_t e = 0; e < cpu->n; ++e) {
    const double bound = fa_want_bound(cpu, e), size = cpu->scale[e / width];
    const double off = fabs(cpu->value[e] - machine->value[e]);
    ++to->elements;
    if (!same_class(cpu->value[e], machine->value[e])) {
      note(to, id, e, "value", cpu->value[e], machine->value[e]);
      continue;
    }
    if (isnan(cpu->value[e])) continue;
    compare_bound(to, id, e, "quant", cpu->quant[e], machine->quant[e], bound, n);
    compare_bound(to, id, e, "accum", cpu->accum[e], machine->accum[e], bound, n);
    if (cpu->noise)
      compare_bound(to, id, e, "noise", cpu->noise[e], machine->noise[e], fmax(bound, cpu->noise[e]), n);
    if (!isfinite(cpu->value[e]) || !isfinite(bound)) continue;
    if (off > 0x1p-20 * bound + 0x1p-48 * size) note(to, id, e, "value", cpu->value[e], machine->value[e]);
    if (bound > 0 && off / bound > to->value) to->value = off / bound;
    if (fabs(cpu->scale[e / width] - machine->scale[e / width]) > 1e-4 * size)
      note(to, id, e, "scale", size, machine->scale[e / width]);
  }
}

typedef struct call {
  const fa_problem *p;
  fa_tensors in, got;
  fa_ref_options opt;
  fa_judge_machine *m;
} call;

static void compare_forward(const call *x, fa_wants *cpu, two_judges *to) {
  fa_wants machine;
  fa_error err = {""};
  REQUIRE(fa_ref_forward(x->p, &x->in, &x->opt, cpu, &err) == FA_OK);
  const fa_status status = fa_judge_forward(x->m, x->p, &x->in, &x->opt, &machine, &err);
  CHECK_MSG(status == FA_OK || status == FA_ERR_UNSUPPORTED, "%s", err.text);
  to->refused += status == FA_ERR_UNSUPPORTED;
  if (status != FA_OK) return;
  compare_want(to, FA_T_O, &cpu->t[FA_T_O], &machine.t[FA_T_O], x->p->seqlen_k);
  compare_want(to, FA_T_LSE, &cpu->t[FA_T_LSE], &machine.t[FA_T_LSE], x->p->seqlen_k);
  fa_wants_free(&machine);
}

static void compare_backward(const call *x, const fa_wants *forward, two_judges *to) {
  const int64_t rows = x->p->seqlen_q * (x->p->heads_q / x->p->heads_kv);
  const fa_tensor *o = &x->got.t[FA_T_O], *lse = &x->got.t[FA_T_LSE];
  fa_wants cpu, machine;
  fa_error err = {""};
  REQUIRE(fa_ref_backward(x->p, &x->in, o, lse, forward, &x->opt, &cpu, &err) == FA_OK);
  const fa_status status = fa_judge_backward(x->m, x->p, &x->in, o, lse, &x->opt, &machine, &err);
  CHECK_MSG(status == FA_OK || status == FA_ERR_UNSUPPORTED, "%s", err.text);
  to->refused += status == FA_ERR_UNSUPPORTED;
  if (status == FA_OK) {
    compare_want(to, FA_T_DQ, &cpu.t[FA_T_DQ], &machine.t[FA_T_DQ], x->p->seqlen_k);
    compare_want(to, FA_T_DK, &cpu.t[FA_T_DK], &machine.t[FA_T_DK], rows);
    compare_want(to, FA_T_DV, &cpu.t[FA_T_DV], &machine.t[FA_T_DV], rows);
    if (x->p->bias.grad)
      compare_want(to, FA_T_DBIAS, &cpu.t[FA_T_DBIAS], &machine.t[FA_T_DBIAS], x->p->seqlen_k);
    if (x->p->sinks.grad)
      compare_want(to, FA_T_DSINKS, &cpu.t[FA_T_DSINKS], &machine.t[FA_T_DSINKS], x->p->seqlen_q);
    for (int k = 0; k < FA_MAX_CAPTURES; ++k)
      compare_want(to, (fa_tensor_id)(FA_T_DBUFFER_0 + k), &cpu.t[FA_T_DBUFFER_0 + k],
                   &machine.t[FA_T_DBUFFER_0 + k], x->p->seqlen_q * x->p->seqlen_k);
    const double steepest = cpu.t[FA_T_DQ].steepest, also = machine.t[FA_T_DQ].steepest;
    CHECK_MSG(fabs(steepest - also) <= 1e-5 * steepest, "%g and %g", steepest, also);
    fa_wants_free(&machine);
  }
  fa_wants_free(&cpu);
}

/* Scalar float32; tensor cores, whose operands may be split in parts, and keys too; and what recorded runs are judged by. */
enum { CLAIMS = 3 };
static void claim(int which, const fa_problem *p, fa_profile *out) {
  if (which == 0)
    fa_backend_ref_f32.profile(NULL, p, out);
  else if (which == 1)
    fa_backend_host.profile(NULL, p, out);
  else
    *out = fa_profile_get(p->family == FA_MEMEFF ? "recorded-memeff" : "recorded", p->dtype);
}

/* The same call by one of these. */
static void compare_claimed(call *x, int which, bool generic, two_judges *to) {
  fa_profile profile;
  fa_wants forward;
  claim(which, x->p, &profile);
  x->opt = (fa_ref_options){.n_threads = 1, .profile = &profile, .generic = generic};
  if (fa_judge_refused(x->p, &x->in, &x->opt, x->p->backward)) {
    ++to->refused;
    return;
  }
  ++to->calls;
  compare_forward(x, &forward, to);
  if (x->p->backward) compare_backward(x, &forward, to);
  fa_wants_free(&forward);
}

static void compare_whole(const fa_case *c, fa_judge_machine *m, two_judges *to) {
  const fa_run_options run = {.passes = FA_PASS_FORWARD | (c->problem.backward ? FA_PASS_BACKWARD : 0),
                              .n_threads = 1};
  fa_outcome outcome;
  fa_error err = {""};
  call x = {.p = &c->problem, .m = m};
  REQUIRE(fa_case_build(c, &x.in, &err) == FA_OK && fa_tensors_clone(&x.got, &x.in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, x.p, &x.got, &run, &outcome, &err) == FA_OK);
  for (int i = 0; i < CLAIMS; ++i) compare_claimed(&x, i, fa_case_is_generic(c), to);
  fa_tensors_free(&x.got);
  fa_tensors_free(&x.in);
}

void compare_judges(const fa_case *c, fa_judge_machine *m, two_judges *to) {
  const int failed = check_n_failed;
  const int64_t wrong = to->wrong;
  ++to->cases;
  if (to->only > 0 && to->cases != to->only) return;
  compare_whole(c, m, to);
  if (to->failed_at == 0 && (to->wrong > wrong || check_n_failed > failed)) to->failed_at = to->cases;
}

void compare_judges_on(const char *profile, uint64_t seed, int64_t index, fa_judge_machine *m,
                       two_judges *to) {
  fa_case c;
  fa_error err = {""};
  REQUIRE(fa_generate(profile, seed, (uint64_t)index, &c, &err) == FA_OK);
  const int64_t before = to->wrong;
  compare_judges(&c, m, to);
  if (before == 0 && to->wrong > 0) {
    const size_t used = strlen(to->first_wrong);
    snprintf(to->first_wrong + used, sizeof to->first_wrong - used, " (case %lld of %s, seed %llu)",
             (long long)index, profile, (unsigned long long)seed);
  }
  fa_case_free(&c);
}
