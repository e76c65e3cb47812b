/* Made-up campaigns: cases with random sizes and words, of which those fail that a planted cause says. */
#ifndef FA_TESTS_REPORT_PLANTED_CAUSES_H
#define FA_TESTS_REPORT_PLANTED_CAUSES_H

#include "report/result.h"

struct cJSON;

typedef struct planted_case {
  int sq, sk, d, group, right; /* right: -2 without a window */
  bool softcap, backward, bf16, alibi;
  unsigned chance; /* 0 .. 999 */
} planted_case;

/* Sets what the case fails by: the state, the verdict or the explanation; false: it passes. */
typedef bool planted_cause(const planted_case *c, fa_result *r);

typedef struct planted_run {
  int n;
  planted_cause *cause;
  bool shapeless;  /* an older version's: no shape */
  bool every_10th; /* but every failure has one, and every tenth passing case */
} planted_run;

/* The i-th case's result. */
void planted_result(const planted_run *run, int i, fa_result *r);
/* The tensor is wrong in so many elements. */
void planted_wrong(fa_result *r, fa_tensor_id id);
void planted_explained(fa_result *r, const char *hypothesis);
/* The groups of all results without a report; the caller deletes them. */
struct cJSON *planted_groups(const planted_run *run);
/* The lines printed for groups, malloc'd. */
char *planted_lines(const struct cJSON *groups, bool verbose);

#endif
