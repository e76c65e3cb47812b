/* --require: what a run must have judged, or it fails. Without it skipped cases fail nothing, as long as one case is
 * judged.
 *
 *   all            every selected case
 *   90%            that share of them
 *   FILE           a JSON object, every key optional:
 *     {"judged": "90%", "features": ["causal", "gqa"], "dtypes": ["bf16"], "families": ["flash"],
 *      "passes": ["backward"], "outputs": ["lse"], "cases": ["gqa-*"], "whole": ["*"]}
 *
 * A feature, type, family, pass or output must have been judged in one case at least; every case whose name matches a
 * pattern (as a shell's) must have been judged, and there must be one. A case is judged if it passed or failed, not
 * if it was skipped or ended in an error; one that was judged in a sample of its places (--sample) counts, but not for
 * "whole", and `sampled` says how many did. A random case that proves nothing
 * (fa_result_proves_nothing) is not counted. */
#ifndef FA_REPORT_REQUIRE_H
#define FA_REPORT_REQUIRE_H

#include "report/result.h"

#include <stdio.h>

struct cJSON;

typedef struct fa_require_item {
  int kind;
  char *text;               /* owned: "90%", "causal", "lse", "gqa-*" */
  int64_t selected, judged; /* of the cases that it is about */
  int64_t sampled;          /* of the judged ones: in a sample of their places */
  char why[256];            /* the first reason for which one was not judged */
} fa_require_item;

typedef struct fa_require {
  fa_require_item *item; /* owned */
  int n;
} fa_require;

/* The i-th word of a vocabulary; NULL behind the last. */
typedef const char *(*fa_require_word)(int i);

/* Reads what stands after --require. word: what "features" may name. FA_ERR_INPUT: the message names file and place,
 * and says what is allowed. */
fa_status fa_require_read(const char *text, fa_require_word word, fa_require *out, fa_error *err);
void fa_require_free(fa_require *r);

/* Counts a result. Its features, passes and outputs may come from a report's entry (fa_require_result). */
void fa_require_note(fa_require *r, const fa_result *result);
/* True for words such as "bias_grad": a case that has them shows it in its backward pass alone. */
bool fa_require_needs_backward(const char *word);
bool fa_require_is_met(const fa_require_item *item);
int fa_require_unmet(const fa_require *r);
/* One line for each that is not met. */
void fa_require_print(const fa_require *r, FILE *out);

/* {"wanted": {"judged": "90%", ...}, "met": false, "items": [{"what": "judged", "wanted": "90%", "cases": 60,
 * "judged": 8, "sampled": 3 (if any), "met": false, "reason": ""}, ...]} */
struct cJSON *fa_require_to_json(const fa_require *r);
/* Reads "wanted" of that again; no vocabulary is checked. */
fa_status fa_require_from_json(const struct cJSON *require, fa_require *out, fa_error *err);
/* Counts an entry of a report's "cases". */
fa_status fa_require_note_entry(fa_require *r, const struct cJSON *entry, fa_error *err);
/* Puts the outcome into the report, at its end. */
void fa_require_put(const fa_require *r, struct cJSON *root);

#endif
