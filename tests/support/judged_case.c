#include "tests/support/judged_case.h"
#include "cases/data/build.h"

#include "fuzz/judging/judge.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static void put_text(char **where, const char *text) {
  if (!text) return;
  free(*where);
  *where = strdup(text);
}

judged_case judge_case(const fa_case *c, const subject_change *change) {
  static const subject_change none;
  judged_case j = {.r = malloc(sizeof *j.r)};
  fa_problem subject;
  fa_tensors set, got;
  fa_profile profile;
  fa_outcome outcome;
  if (!change) change = &none;
  REQUIRE(j.r);
  fa_result_init(j.r);
  REQUIRE(fa_case_build(c, &set, &j.err) == FA_OK && fa_tensors_clone(&got, &set, &j.err) == FA_OK);
  REQUIRE(fa_problem_copy(&subject, &c->problem) == FA_OK);
  put_text(&subject.score_mod, change->score_mod);
  put_text(&subject.mask_mod, change->mask_mod);
  if (change->before) change->before(&got);
  fa_backend_ref_f32.profile(NULL, &subject, &profile);
  const fa_run_options run = {.passes = FA_PASS_FORWARD | FA_PASS_BACKWARD, .n_threads = 1};
  const fa_status ran = fa_backend_ref_f32.run(NULL, &subject, &got, &run, &outcome, &j.err);
  CHECK_MSG(ran == FA_OK, "%s", j.err.text);
  if (change->after) change->after(&got);
  const fa_judge_config config = {.profile = &profile,
                                  .n_threads = 1,
                                  .generic = fa_case_is_generic(c),
                                  .backward = true,
                                  .poison = FA_POISON_A};
  j.status = fa_judge(&c->problem, &set, &got, &config, j.r, &j.err);
  fa_problem_free(&subject);
  fa_tensors_free(&got);
  fa_tensors_free(&set);
  return j;
}

void judged_case_free(judged_case *j) {
  fa_result_free(j->r);
  free(j->r);
}
