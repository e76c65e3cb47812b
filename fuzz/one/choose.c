#include "fuzz/judging/delivered.h"
#include "fuzz/judging/judge.h"
#include "fuzz/one/parts.h"

#include <stdio.h>

typedef fa_one_run run;

void fa_one_skip(fa_result *r, const char *reason) {
  r->state = FA_SKIP;
  snprintf(r->reason, sizeof r->reason, "%s", reason);
}

/* Of a candidate that is held to its contract. What it would rather not do when it sees the case is a refusal. */
static bool choose_promised_passes(run *x, unsigned wanted) {
  const fa_backend *b = x->config->backend;
  char why[256] = "", reason[400];
  const unsigned promised = wanted & fa_rules_promised(x->config->rules, &x->c->problem, why, sizeof why);
  x->passes = promised;
  if (x->c->expect == FA_EXPECT_REJECT || !(promised & FA_PASS_FORWARD)) {
    snprintf(reason, sizeof reason, "not claimed: %s", why);
    fa_one_skip(x->r, promised & FA_PASS_FORWARD ? "to refuse a case proves nothing about an untrusted kernel"
                                                 : reason);
    return false;
  }
  x->r->backward_left_out = wanted != promised;
  if (wanted != promised) fa_result_note(x->r, "backward not claimed: %s", why);
  if (!(promised & ~b->supports(x->config->backend_self, &x->c->problem, why, sizeof why))) return true;
  fa_result_raise(x->r, FA_FAIL, "refused inside its contract: %s", why[0] ? why : "without a reason");
  return false;
}

bool fa_one_choose_passes(run *x) {
  const fa_backend *b = x->config->backend;
  const fa_problem *p = &x->c->problem;
  char why[256] = "";
  const unsigned wanted = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  if (x->config->rules && fa_one_has_layer(x, FA_LAYER_CONTRACT)) return choose_promised_passes(x, wanted);
  const unsigned able = b->supports(x->config->backend_self, p, why, sizeof why);
  x->passes = able & wanted;
  if (!(able & FA_PASS_FORWARD)) {
    if (x->c->expect == FA_EXPECT_REJECT) {
      x->r->state = FA_PASS;
      fa_result_note(x->r, "refused: %s", why);
    } else {
      char reason[400];
      snprintf(reason, sizeof reason, "%s: %s", b->name, why[0] ? why : "not supported");
      fa_one_skip(x->r, reason);
    }
    return false;
  }
  x->r->backward_left_out = (wanted & FA_PASS_BACKWARD) && !(able & FA_PASS_BACKWARD);
  if (x->r->backward_left_out)
    fa_result_note(x->r, "backward not judged: %s: %s", b->name, why[0] ? why : "not supported");
  return true;
}

fa_tensor_bits fa_one_undelivered(const run *x) {
  return fa_outputs_of(&x->pristine, x->passes) & ~x->declaration.contract.outputs;
}

void fa_one_skip_nothing_delivered(const run *x) {
  char reason[160];
  snprintf(reason, sizeof reason, "%s: it delivers none of this call's outputs", x->config->backend->name);
  fa_one_skip(x->r, reason);
}

bool fa_one_choose_outputs(run *x) {
  const fa_tensor_bits delivers = x->declaration.contract.outputs;
  const fa_tensor_bits forward = fa_outputs_of(&x->pristine, FA_PASS_FORWARD);
  const fa_tensor_bits backward = fa_outputs_of(&x->pristine, x->passes) & ~forward;
  if (backward && !(backward & delivers)) {
    x->passes = FA_PASS_FORWARD;
    x->r->backward_left_out = true;
    fa_result_note(x->r, "backward not judged: %s: it delivers no gradient", x->config->backend->name);
  }
  const bool appends = fa_tensor_is_updated(&x->c->problem, FA_T_K);
  if (((forward | backward) & delivers) || appends) return true;
  fa_one_skip_nothing_delivered(x);
  return false;
}

void fa_one_choose_profile(run *x) {
  const fa_backend *b = x->config->backend;
  const fa_problem *p = &x->c->problem;
  if (x->config->rules && fa_one_has_layer(x, FA_LAYER_PROFILE))
    fa_rules_profile(x->config->rules, p, &x->profile);
  else
    b->profile(x->config->backend_self, p, &x->profile);
  fa_declaration_of(b, x->config->backend_self, p, &x->declaration);
  snprintf(x->r->profile, sizeof x->r->profile, "%s", x->profile.name);
}
