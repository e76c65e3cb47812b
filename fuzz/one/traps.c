/* What a candidate that nobody trusts is tried with beside a case's own runs. */
#include "fuzz/judging/judge.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/one/parts.h"
#include "fuzz/untrusted/trap_call.h"

#include <stdio.h>
#include <string.h>

static const char wrong[] = "answered as for other data";

/* "o: 12 of 4096 elements out of bounds" */
static void describe_failure(const fa_result *r, char *out, size_t size) {
  snprintf(out, size, "%s%s%s", fa_state_name(r->state), r->reason[0] ? ": " : "", r->reason);
  for (int i = 0; !r->reason[0] && i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    if (!v->fail) continue;
    snprintf(out, size, "%s: %lld of %lld elements out of bounds", fa_tensor_id_name(v->id),
             (long long)v->bad, (long long)v->count);
    return;
  }
}

static void conclude_trap(fa_one_run *x, fa_trap kind, const fa_one_run *inner) {
  char what[300];
  const fa_result *r = inner->r;
  if (!fa_state_is_failure(r->state) || r->state == FA_VACUOUS) return;
  if (fa_only_statistics_fail(r)) {
    x->odd = true;
    return;
  }
  describe_failure(r, what, sizeof what);
  const bool stale = inner->first.t[FA_T_Q].data && x->first.t[FA_T_Q].data &&
                     fa_outputs_are_same(&inner->first, &x->first, x->passes);
  fa_result_raise(x->r, r->state, "trap %s: %s%s%s%s", fa_trap_name(kind), stale ? wrong : what,
                  stale ? " (" : "", stale ? what : "", stale ? ")" : "");
}

static fa_status spring(fa_one_run *x, uint64_t which, fa_error *err) {
  const fa_rules *rules = x->config->rules;
  fa_trap_call call;
  fa_one_run inner = {0};
  fa_error why = {""};
  fa_status status =
      fa_trap_call_make(rules, x->config->number, which, x->c, &x->pristine, x->passes, &call, err);
  if (status != FA_OK) return status;
  status = fa_one_run_inside(x, &call.c, &call.in, &inner, &why);
  if (status == FA_OK) {
    x->r->traps |= 1u << call.kind;
    x->r->seconds_subject += inner.r->seconds_subject;
    conclude_trap(x, call.kind, &inner);
    fa_tensors_free(&x->between);
    x->between = inner.first;
    memset(&inner.first, 0, sizeof inner.first);
  }
  fa_one_run_inside_free(&inner);
  fa_trap_call_free(&call);
  /* The reference has no value for what was made: then this case has no such trap. */
  if (status == FA_ERR_INPUT || status == FA_ERR_UNSUPPORTED) return FA_OK;
  return status == FA_OK ? FA_OK : fa_fail(err, status, "%s", why.text);
}

fa_status fa_one_traps(fa_one_run *x, fa_error *err) {
  const int n = x->inner ? 0 : fa_trap_calls(x->config->rules, &x->c->problem);
  fa_status status = FA_OK;
  for (int which = 0; status == FA_OK && which < n; ++which) status = spring(x, (uint64_t)which, err);
  return status;
}

void fa_one_trap_blame(fa_one_run *x) {
  if (x->between.t[FA_T_Q].data && fa_outputs_are_same(&x->second, &x->between, x->passes))
    fa_result_raise(x->r, FA_FAIL, "the case once more: %s", wrong);
}

fa_status fa_one_fresh(fa_one_run *x, fa_error *err) {
  const fa_backend *b = x->config->backend;
  bool good = false;
  if (x->inner || !b->renew || !x->config->rules ||
      !fa_rules_renew_after(x->config->rules, x->config->number))
    return FA_OK;
  fa_status status = b->renew(x->config->backend_self, err);
  x->r->traps |= 1u << FA_TRAP_PROCESS;
  if (status != FA_OK) return status;
  fa_tensors_free(&x->second);
  status = fa_one_run_once(x, &x->second, FA_POISON_B, x->config->schedule_seed, &good, err);
  if (status == FA_OK && good &&
      fa_check_repeats(&x->c->problem, &x->profile, &x->first, &x->second, FA_POISON_B, x->r))
    fa_result_note(x->r, "the second run was in another process");
  return status;
}
