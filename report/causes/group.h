/* Private to report/causes: the failures, and the groups that are made of them. */
#ifndef FA_REPORT_CAUSES_GROUP_H
#define FA_REPORT_CAUSES_GROUP_H

#include "cases/vocabulary/sample.h"
#include "report/causes/fit.h"
#include "report/failure_class.h"

struct cJSON;

typedef struct fa_cause_failure {
  char *name, *recipe, *backend; /* owned; recipe: the case's JSON, NULL if the report has it */
  const struct cJSON *entry;     /* in the report, or NULL */
  int64_t place;                 /* in the report's failures, where it is known beforehand; -1 */
  bool shrunk;                   /* without an entry: there is a shrunk case, with so much work */
  double shrunk_work;
  int n_explanations;
  char hypothesis[FA_EXPLANATIONS][40];
  char text[FA_EXPLANATIONS][160];
  fa_failure_class class;
  fa_tensor_bits tensors; /* that are wrong */
  uint64_t schedule_seed;
  fa_sample sample; /* that it was seen in; not asked: everything was judged */
  double work, worst_ratio;
} fa_cause_failure;

typedef struct fa_cause_group {
  uint64_t *member; /* owned: bits of failing cases */
  int64_t n;
  char hypothesis[40]; /* "": not explained */
  fa_predicate predicate;
} fa_cause_group;

typedef struct fa_cause_groups {
  const fa_cause_rows *rows;
  const fa_cause_failure *failure; /* one a failing row */
  fa_cause_group *v;               /* owned */
  int n, capacity;
  bool failed; /* out of memory */
} fa_cause_groups;

/* Makes the groups, largest first. failure[i] is about failing row i of the rows, which are closed. */
fa_status fa_cause_groups_make(fa_cause_groups *g, const fa_cause_rows *rows,
                               const fa_cause_failure *failure);
void fa_cause_groups_free(fa_cause_groups *g);
/* The question that a group puts to its predicate. */
fa_fit fa_cause_fit(const fa_cause_groups *g, const fa_cause_group *group);
/* True for a predicate that tells its group from the passing cases. */
bool fa_cause_separates(const fa_predicate *p);

/* A line less to read is worth so many bits. */
#define FA_GROUP_BITS 12
/* A predicate that more cases than this share satisfy says little about one of them, or about two groups. */
#define FA_SELECTIVE 0.25
#define FA_MOST_CASES 0.5

/* ---- changes to the groups once they have predicates ---- */

/* Moves failures that nothing explains to a group whose predicate they satisfy. */
void fa_cause_adopt(fa_cause_groups *g);
/* Takes groups apart that several predicates describe better than one. */
void fa_cause_split(fa_cause_groups *g);
/* Puts groups together whose failures one predicate describes. */
void fa_cause_join(fa_cause_groups *g);
/* Moves failures of small groups to a larger one whose predicate alone foretells a failure. */
void fa_cause_absorb(fa_cause_groups *g);
/* Puts small groups together that have no predicate. */
void fa_cause_sweep(fa_cause_groups *g);

/* ---- for these ---- */

double fa_cause_share_of_cases(const fa_cause_groups *g, const fa_predicate *p);
int64_t fa_cause_first_of(const fa_cause_group *group); /* a member; there must be one */
bool fa_cause_is_explained_by(const fa_cause_failure *f, const char *hypothesis);
/* Cases whose bounds are no test have nothing to do with wrong results. */
bool fa_cause_may_belong(const fa_cause_groups *g, int64_t failure, int64_t other);
fa_cause_group *fa_cause_add_group(fa_cause_groups *g, const char *hypothesis); /* NULL: out of memory */
void fa_cause_put(fa_cause_groups *g, fa_cause_group *group, int64_t failure);
void fa_cause_remove_empty(fa_cause_groups *g);
void fa_cause_fit_group(fa_cause_groups *g, fa_cause_group *group);
void fa_cause_sort(fa_cause_groups *g);

#endif
