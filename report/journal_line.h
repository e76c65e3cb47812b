/* Lines of the journal read back into a report, so that a run that was cut off and went on reports what an
 * uninterrupted one does. Every number keeps its bits on the way. */
#ifndef FA_REPORT_JOURNAL_LINE_H
#define FA_REPORT_JOURNAL_LINE_H

#include "report/json.h"

typedef struct fa_report_line {
  int64_t item;     /* place in the run */
  double elapsed;   /* seconds since the run began */
  fa_result *brief; /* owned: state, reason, notes, name, backend; of failures which tensors failed */
  struct cJSON *entry, *failure; /* owned; failure is NULL after a pass or a skip */
} fa_report_line;

/* FA_ERR_INPUT: the text is no such line; the message says what is missing. */
fa_status fa_report_line_parse(const char *text, fa_report_line *out, fa_error *err);
/* The line that an entry of a report's "cases" came from. failure: the next of its "failures", which is used
 * (out->failure is not NULL) unless the case passed or was skipped; NULL = there is none left. */
fa_status fa_report_line_from_report(const struct cJSON *entry, const struct cJSON *failure, int64_t item,
                                     fa_report_line *out, fa_error *err);
/* As fa_report_add for the result that the line was written from. brief's waiver counts, not the line's. */
fa_status fa_report_add_line(fa_report *r, fa_report_line *line, fa_error *err);
void fa_report_line_free(fa_report_line *line);
/* The tensors that an array of a failure names, as bits 1 << fa_tensor_id: "law_broken", "law_nan". */
uint64_t fa_report_tensors_at(const struct cJSON *failure, const char *key);

/* ---- for report/json.c ---- */

/* The parsed recipe in its canonical form, whose numbers print with all the digits they need. Takes the
 * argument over. */
struct cJSON *fa_report_exact_case(struct cJSON *recipe);
/* "waiver" and "waived", when the result has one. */
void fa_report_add_waiver(struct cJSON *object, const fa_result *r);

/* Makes numbers raw text with 17 digits, which prints as it stands: cJSON's own printing can change the last
 * bit. What looks for numbers in the tree no longer finds them. */
void fa_report_keep_digits(struct cJSON *root);
/* Sets every time in the report to zero, so that two runs can be compared byte for byte. */
void fa_report_zero_times(struct cJSON *root);

#endif
