/* Reads lines of the journal back into a report, so that an interrupted and resumed run reports what an
 * uninterrupted one does. Every number keeps its bits. */
#ifndef FA_REPORT_JOURNAL_LINE_H
#define FA_REPORT_JOURNAL_LINE_H

#include "report/json.h"

typedef struct fa_report_line {
  int64_t item;     /* place in the run */
  double elapsed;   /* seconds since the run began */
  fa_result *brief; /* owned: state, reason, notes, name, backend; of failures the tensors that failed */
  struct cJSON *entry, *failure; /* owned; failure is NULL after a pass or a skip */
} fa_report_line;

/* FA_ERR_INPUT: the text is not such a line; the message says what is missing. */
fa_status fa_report_line_parse(const char *text, fa_report_line *out, fa_error *err);
/* Rebuilds the line from an entry of a report's "cases". failure: the next of its "failures", which is used
 * (out->failure is then not NULL) unless the case passed or was skipped; NULL = no more failures. */
fa_status fa_report_line_from_report(const struct cJSON *entry, const struct cJSON *failure, int64_t item,
                                     fa_report_line *out, fa_error *err);
/* As fa_report_add for the result that the line was written from. brief's waiver applies, not the line's. */
fa_status fa_report_add_line(fa_report *r, fa_report_line *line, fa_error *err);
void fa_report_line_free(fa_report_line *line);
/* The tensors named in an array of a failure ("law_broken", "law_nan"), as bits 1 << fa_tensor_id. */
fa_tensor_bits fa_report_tensors_at(const struct cJSON *failure, const char *key);

/* ---- for report/json.c ---- */

/* The parsed recipe in canonical form, with all the digits that its numbers need. Consumes the argument. */
struct cJSON *fa_report_exact_case(struct cJSON *recipe);
/* Adds "waiver" and "waived" if the result has a waiver. */
void fa_report_add_waiver(struct cJSON *object, const fa_result *r);

/* Turns numbers into raw text with 17 digits, because cJSON's own printing can change the last bit. Code that
 * looks for numbers in the tree no longer finds them. */
void fa_report_keep_digits(struct cJSON *root);
/* Sets every time in the report to zero, so that two runs can be compared byte for byte. */
void fa_report_zero_times(struct cJSON *root);

#endif
