/* A case, what ref-f32 made of it, and what judges say of that. */
#ifndef FA_TESTS_DEVICE_SUBJECT_H
#define FA_TESTS_DEVICE_SUBJECT_H

#include "cases/recipe/case.h"
#include "fuzz/judging/judge.h"

typedef struct subject {
  fa_case c;
  fa_tensors in, got;
  fa_profile profile;          /* that it is judged by */
  const fa_contract *contract; /* NULL: the harness's conventions */
} subject;

/* Case `index` of a profile of random cases: its data, and then what ref-f32 makes of them; or both. */
void make_subject(const char *profile, int64_t index, subject *s);
void make_given(const char *text, subject *s); /* of a case as JSON */
void run_made(subject *s);
void run_subject(const char *profile, int64_t index, subject *s);
void free_subject(subject *s);

/* fa_judge, with a machine or without. r: to be freed. */
fa_status judge_subject(const subject *s, fa_judge_machine *m, bool both, fa_result *r, fa_error *err);

/* As far as two judges may differ. */
bool same_verdicts(const fa_result *a, const fa_result *b);

#endif
