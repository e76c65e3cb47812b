/* The JSON report: written once at the end of a run, atomically; read back by repro, merge and JUnit. */
#ifndef FA_REPORT_JSON_H
#define FA_REPORT_JSON_H

#include "report/result.h"

struct cJSON;

typedef struct fa_report_pair {
  const char *key, *value;
} fa_report_pair;

/* What the report says about where it was made. Strings are copied. */
typedef struct fa_report_head {
  const char *version, *git, *command;
  const char *backend_name, *backend_device, *backend_driver; /* the first one, when several ran */
  const fa_report_pair *host;                                 /* ends with a NULL key */
} fa_report_head;

typedef struct fa_report {
  struct cJSON *root; /* owned: the whole document */
  struct cJSON *failures, *cases;
  fa_summary summary;
} fa_report;

fa_status fa_report_init(fa_report *r, const fa_report_head *head, fa_error *err);
/* Keeps what the report needs of the result: everything of a failure or error, one line of a pass. */
fa_status fa_report_add(fa_report *r, const fa_result *result, fa_error *err);
/* Only what a pass has: a line of "cases". It is kept as text: as trees the millions of cases of a long
 * campaign take ten times the memory. */
fa_status fa_report_add_case(fa_report *r, const struct cJSON *entry, fa_error *err);
/* One result as a line of the journal, without its end, malloc'd; NULL when out of memory. All that a report
 * needs of it: report/journal_line.h reads it back. item: its place in the run; elapsed: seconds since the run
 * began. */
char *fa_report_journal_line(const fa_result *result, int64_t item, double elapsed);
/* path also goes into each failure's "repro". */
fa_status fa_report_write(fa_report *r, const char *path, double seconds, fa_error *err);
void fa_report_free(fa_report *r);

/* Reads a report and checks its shape: "fa_report": 1, summary, failures, cases. Messages name the file and
 * the JSON path. *root is the caller's. */
fa_status fa_report_load(const char *path, struct cJSON **root, fa_error *err);
/* The same on text, which has a NUL at text[n_bytes]; path stands for it in messages. */
fa_status fa_report_parse(const char *text, size_t n_bytes, const char *path, struct cJSON **root,
                          fa_error *err);
/* The counts of a report that was read, and its cases by kernel. */
void fa_report_read_summary(const struct cJSON *root, fa_summary *out);
/* Its shape alone. */
fa_status fa_report_check(const char *path, const struct cJSON *root, fa_error *err);

/* Reports as one: cases and failures one behind the other, counts added; the head is the first one's.
 * A result that several reports have stands there once, and counts once: shards overlapped, or a run was
 * repeated. The same case is the same "record" (the recipe and, of a recorded run, the file) and name on the
 * same backend, device and driver; in a report that has it k times each is held against the others' of the
 * same number. The same result: all but times and where files are. If it differs both stay, and
 * "contradictions" in the merged report names them:
 *   {"name", "backend", "results": [{"report": path, "state", "worst_ratio"}, ...]}.
 * Entries without a record, of older versions, all stay. paths: the reports' names for that. "run" and
 * "finished" go, where n > 1; "coverage" is added up, and goes where a result stood in several. "kernels" is
 * counted again. What two kernels say of a case is no contradiction: both stay. */
fa_status fa_report_merge(struct cJSON *const *reports, const char *const *paths, int n, struct cJSON **out,
                          fa_error *err);
fa_status fa_report_save(const struct cJSON *root, const char *path, fa_error *err);

/* One HTML page that needs nothing else: summary, failures with their worst elements, cases. */
fa_status fa_report_write_html(const struct cJSON *root, const char *path, fa_error *err);

/* JUnit XML of one (merged) report: one testsuite, a testcase per case with the backend as its class. */
fa_status fa_report_write_junit(const struct cJSON *root, const char *path, fa_error *err);

#endif
