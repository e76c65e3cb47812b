/* --tier: what is worth most in a given time, out of the named cases and of random ones.
 *
 * The order is decided before the run, by what is known without running anything, so that it is the same on every machine
 * and for every process that resumes; time only decides where it is cut off:
 *   1. Named cases that bring features that none before them has (the rows of fuzz/coverage), most new features a second
 *      first. A case's seconds are an estimate from its work and the kind of subject (tier_cost.c).
 *   2. Turn by turn a random case and one of the other named ones, the cheapest first.
 *   3. Random cases. Their profiles are chosen as the named cases are, by what a sample of each brings that neither the
 *      cases of 1 nor a profile before it has, and take turns.
 * Cases that no subject can run are left out, and those that would take more than a tenth of the time. */
#ifndef FA_FUZZ_CAMPAIGN_TIER_H
#define FA_FUZZ_CAMPAIGN_TIER_H

#include "fuzz/coverage/table.h"
#include "fuzz/options/cases_select.h"

struct cJSON;
struct fa_session;

typedef struct fa_tier_kind {
  const char *name;
  double seconds;
} fa_tier_kind;

/* "smoke", "standard", "nightly"; NULL: there is no such tier. */
const fa_tier_kind *fa_tier_find(const char *name);

/* ---- the rule (tier_order.c) ---- */

#define FA_WORTH_WORDS ((FA_MAX_FEATURES + 63) / 64)
/* Which features something has, and what it is expected to cost. */
typedef struct fa_worth {
  uint64_t has[FA_WORTH_WORDS];
  double seconds; /* > 0; infinite: it is not to be taken */
} fa_worth;

/* Sets bits for the features of a case. *n_features: how many there are. */
void fa_worth_see(fa_worth *w, const fa_case *c, int *n_features);
int fa_worth_count(const uint64_t has[FA_WORTH_WORDS]);
/* Puts the places of v in order: first those that bring features that seen, which is added to, lacks, most new ones a
 * second first; then the rest, the cheapest first. Of equals the earlier one is first. Returns how many there are of the
 * first kind; *n_order: of both. */
int64_t fa_worth_order(const fa_worth *v, int64_t n, uint64_t seen[FA_WORTH_WORDS], int64_t *order,
                       int64_t *n_order);

/* ---- the estimate (tier_cost.c) ---- */

/* Seconds on a backend ("host:hopper"), by one process: of the judge, and of the subject. */
double fa_tier_cost(const char *backend, const fa_case *c);

/* ---- a tier ---- */

#define FA_TIER_PROFILES 64
typedef struct fa_tier {
  const char *name;
  double seconds;                        /* its time */
  double started;                        /* on the clock of fa_seconds_now */
  uint64_t seed;                         /* of the random cases */
  int64_t *order;                        /* owned: places in the list of cases */
  double *seconds_of;                    /* owned: their estimates */
  int64_t n_named, n_first;              /* in order; of these, that bring something new */
  int64_t n_all, n_unable, n_too_long;   /* of the list; left out */
  const char *profile[FA_TIER_PROFILES]; /* in order; of fa_generate_profiles */
  double profile_seconds[FA_TIER_PROFILES];
  int n_profiles;
  int n_features, n_features_first; /* rows there are; that the first n_first cases have */
  double estimated, measured;       /* sums over results: how much slower this machine is */
  int64_t n_run[2];                 /* results: named, random */
  uint64_t seen[FA_WORTH_WORDS];    /* features of the cases that were judged */
} fa_tier;

/* Chooses among the list for the session's backends, which are asked in a process of their own. */
fa_status fa_tier_choose(fa_tier *t, struct fa_session *s, const fa_case_list *list, fa_error *err);
void fa_tier_free(fa_tier *t);
/* Case number `index`, from 0. False: there are so many only. *place: in the list; -1: it is random, and *origin says
 * which. */
bool fa_tier_at(const fa_tier *t, int64_t index, int64_t *place, fa_case_origin *origin);
/* The time is over for case number `index`, or it is about over and the case would take much longer. deadline: on the
 * clock of fa_seconds_now, as is now. */
bool fa_tier_is_over(const fa_tier *t, int64_t index, double deadline, double now);
/* Notes the result of case number `index`. judged: c, which may be NULL, passed or failed. */
void fa_tier_note(fa_tier *t, int64_t index, const fa_case *c, bool judged, double seconds);

/* What was chosen, before the run; what became of it, after it; the same for the report. */
void fa_tier_print_choice(FILE *out, const fa_tier *t);
void fa_tier_print_outcome(FILE *out, const fa_tier *t);
struct cJSON *fa_tier_to_json(const fa_tier *t);

#endif
