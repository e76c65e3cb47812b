#include "tests/device/subject.h"

#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/generate/draw.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void make_subject(const char *profile, int64_t index, subject *s) {
  fa_error err = {""};
  memset(s, 0, sizeof *s);
  REQUIRE(fa_generate(profile, 5, index, &s->c, &err) == FA_OK);
  REQUIRE(fa_case_build(&s->c, &s->in, &err) == FA_OK);
}

void make_given(const char *text, subject *s) {
  fa_error err = {""};
  memset(s, 0, sizeof *s);
  CHECK_MSG(fa_case_from_text(text, &s->c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(&s->c, &s->in, &err) == FA_OK);
}

void run_made(subject *s) {
  fa_outcome outcome;
  fa_error err = {""};
  REQUIRE(fa_tensors_clone(&s->got, &s->in, &err) == FA_OK);
  fa_backend_ref_f32.profile(NULL, &s->c.problem, &s->profile);
  const fa_run_options run = {.passes = FA_PASS_FORWARD | (s->c.problem.backward ? FA_PASS_BACKWARD : 0),
                              .n_threads = 1};
  REQUIRE(fa_backend_ref_f32.run(NULL, &s->c.problem, &s->got, &run, &outcome, &err) == FA_OK);
}

void run_subject(const char *profile, int64_t index, subject *s) {
  make_subject(profile, index, s);
  run_made(s);
}

void free_subject(subject *s) {
  fa_tensors_free(&s->got);
  fa_tensors_free(&s->in);
  fa_case_free(&s->c);
}

fa_status judge_subject(const subject *s, fa_judge_machine *m, bool both, fa_result *r, fa_error *err) {
  const fa_judge_config config = {.profile = &s->profile,
                                  .n_threads = 1,
                                  .generic = fa_case_is_generic(&s->c),
                                  .backward = s->c.problem.backward,
                                  .machine = m,
                                  .both = both,
                                  .contract = s->contract,
                                  .poison = FA_POISON_A};
  fa_result_init(r);
  return fa_judge(&s->c.problem, &s->in, &s->got, &config, r, err);
}

/* The worst element is the one whose ratio it is. */
static bool has_its_worst(const fa_verdict *v) {
  const fa_point *w = v->worst;
  return v->n_worst == 0 || fabs(w->err - w->ratio * w->bound) <= 1e-9 * w->err;
}

bool same_verdicts(const fa_result *a, const fa_result *b) {
  bool same = a->state == b->state && a->n_verdicts == b->n_verdicts;
  for (int i = 0; same && i < a->n_verdicts; ++i) {
    const fa_verdict *x = &a->verdict[i], *y = &b->verdict[i];
    same = x->id == y->id && x->count == y->count && x->bad == y->bad &&
           llabs(x->n_stat - y->n_stat) <= y->n_stat / 1000 && /* one at its threshold may count here alone */

           fabs(x->worst_ratio - y->worst_ratio) <= 0x1p-10 * y->worst_ratio &&
           strcmp(x->vacuous, y->vacuous) == 0 && has_its_worst(x) && has_its_worst(y);
  }
  return same;
}
