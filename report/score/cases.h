/* What a score needs of the cases of a report, taken from their entries one after the other. */
#ifndef FA_REPORT_SCORE_CASES_H
#define FA_REPORT_SCORE_CASES_H

#include "report/result.h"
#include "report/score/reasons.h"

struct cJSON;

/* ---- coverage: cases by what they have ---- */

typedef enum fa_score_kind {
  FA_SCORE_FAMILY,
  FA_SCORE_DTYPE,
  FA_SCORE_FEATURE,
  FA_SCORE_PASS,
  FA_SCORE_OUTPUT,
  FA_SCORE_KINDS
} fa_score_kind;
/* "families", "dtypes", "features", "passes", "outputs": as in a contract and in --require. */
extern const char *const fa_score_kinds[FA_SCORE_KINDS];

typedef struct fa_score_row {
  fa_score_kind kind;
  char name[48];                     /* "causal" */
  int64_t selected, judged, refused; /* refused: though all that the case asks for is claimed */
  fa_score_reasons why;              /* the others were not judged */
} fa_score_row;

/* ---- accuracy: judged cases by output and element type ---- */

enum { FA_SCORE_WORST = 3 };
typedef struct fa_score_point {
  double ratio;
  char name[120];
} fa_score_point;

typedef struct fa_score_worst {
  char word[48]; /* a feature, or "plain" */
  fa_score_point at;
} fa_score_worst;

typedef struct fa_score_map {
  char output[48], dtype[8];
  double *ratio, *rms; /* owned: a value a case */
  int64_t n_ratio, n_rms, room_ratio, room_rms;
  int n_worst;
  fa_score_point worst[FA_SCORE_WORST];
  fa_score_worst *by; /* owned */
  int n_by;
} fa_score_map;

typedef struct fa_score_cases {
  int64_t total, vacuous, judged, sampled /* judged in a sample of their places */, refused,
      states[FA_N_STATES], waived;
  fa_score_reasons why;
  fa_score_row *row; /* owned */
  int n_rows;
  fa_score_map *map; /* owned */
  int n_maps;
  char (*record)[20]; /* owned: of every case, what identifies it; sorted by fa_score_cases_identity */
  int64_t n_records, room_records;
  char backend[320]; /* of all cases */
  const struct cJSON *contracts;
} fa_score_cases;

/* contracts: the report's key, or NULL; it must outlive what is collected. */
void fa_score_cases_init(fa_score_cases *c, const struct cJSON *contracts);
void fa_score_cases_free(fa_score_cases *c);
/* Takes an entry of "cases". FA_ERR_INPUT: it is of another backend than those before. */
fa_status fa_score_cases_add(fa_score_cases *c, const struct cJSON *entry, fa_error *err);
/* SHA-256 of what identifies the cases, whatever their order: two scores with the same one are of the same cases. */
void fa_score_cases_identity(fa_score_cases *c, char hex[65]);

/* ---- for report/score/ ---- */

/* Counts the entry in the rows of everything that it has. */
fa_status fa_score_cover(fa_score_cases *c, const struct cJSON *entry, const fa_result *brief, fa_error *err);
/* Adds the entry's ratios and rms to the maps. */
fa_status fa_score_map_errors(fa_score_cases *c, const struct cJSON *entry, const char *features,
                              fa_error *err);
bool fa_score_is_judged(fa_state s);
/* The n-th word of a text of words; false: there are fewer. */
bool fa_score_word(const char *text, int n, char *word, size_t size);
/* Which kind of word it is. */
fa_score_kind fa_score_kind_of(const char *word);

/* Families first, each kind by name. */
struct cJSON *fa_score_coverage_json(fa_score_cases *c, const struct cJSON *head);
/* The mean of judged / selected over the rows that count, and of which kind these are: "required" or "selected". */
double fa_score_covered(const fa_score_cases *c, const struct cJSON *head, const char **over);
struct cJSON *fa_score_accuracy_json(fa_score_cases *c);
/* True if all that was required was judged, and of an untrusted kernel all that it claims. */
bool fa_score_is_met(const struct cJSON *head);
/* head: for "groups" and "require". */
struct cJSON *fa_score_verdict_json(const fa_score_cases *c, const struct cJSON *head);

#endif
