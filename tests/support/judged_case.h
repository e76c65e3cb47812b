/* Runs a case with ref-f32 and the judge, in this process. */
#ifndef FA_TESTS_SUPPORT_JUDGED_CASE_H
#define FA_TESTS_SUPPORT_JUDGED_CASE_H

#include "cases/recipe/case.h"
#include "report/result.h"

/* How the subject deviates from the case; all may be NULL. */
typedef struct subject_change {
  const char *score_mod, *mask_mod;
  void (*before)(fa_tensors *inputs), (*after)(fa_tensors *outputs);
} subject_change;

typedef struct judged_case {
  fa_status status; /* of the judge; the subject and the data must have none */
  fa_error err;
  fa_result *r;
} judged_case;

/* change may be NULL. */
judged_case judge_case(const fa_case *c, const subject_change *change);
void judged_case_free(judged_case *j);

#endif
