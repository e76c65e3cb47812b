/* The JSON report: written atomically at the end of a run; read by repro, merge and JUnit. */
#ifndef FA_REPORT_JSON_H
#define FA_REPORT_JSON_H

#include "report/require.h"
#include "report/result.h"

struct cJSON;

#define FA_REPORT_VERSION 1 /* of "fa_report": docs/reference/versions.md */

typedef struct fa_report_pair {
  const char *key, *value;
} fa_report_pair;

/* The report's header: where it was made. Strings are copied. */
typedef struct fa_report_head {
  const char *version, *git, *command;
  const char *backend_name, *backend_device, *backend_driver; /* the first one, if several ran */
  const fa_report_pair *host;                                 /* ends with a NULL key */
} fa_report_head;

typedef struct fa_report {
  struct cJSON *root; /* owned: the whole document */
  struct cJSON *failures, *cases;
  int64_t n_failures; /* how many were added: the number of the next one */
  fa_summary summary;
  int64_t n_maps;      /* failures that have maps; only the first of them keep theirs (report/maps.h) */
  fa_require *require; /* owned; NULL: nothing is required */
} fa_report;

fa_status fa_report_init(fa_report *r, const fa_report_head *head, fa_error *err);
/* Keeps what the report needs of the result: everything of a failure or error, one line of a pass. */
fa_status fa_report_add(fa_report *r, const fa_result *result, fa_error *err);
/* Adds a line of "cases" alone, as for a pass. It is kept as text: as trees, the millions of cases of a long
 * campaign would take ten times the memory. */
fa_status fa_report_add_case(fa_report *r, const struct cJSON *entry, fa_error *err);
/* Adds an item of "failures", which is consumed. Only the first failures with maps keep these. */
fa_status fa_report_add_failure(fa_report *r, struct cJSON *failure, fa_error *err);
/* What identifies the case by its content: 16 hexadecimal digits. "" without a recipe. */
void fa_report_record(const fa_result *result, char hex[20]);
/* One result as a line of the journal, without the newline, malloc'd; NULL when out of memory. It has
 * everything that a report needs, and report/journal_line.h reads it back. item: its place in the run;
 * elapsed: seconds since the run began. */
char *fa_report_journal_line(const fa_result *result, int64_t item, double elapsed);
/* After the last result: counts, time, and each failure's "repro", which names the report's path. NULL: it will not be
 * written, and there is no "repro". */
fa_status fa_report_complete(fa_report *r, const char *path, double seconds, fa_error *err);
/* Completes and writes the report. */
fa_status fa_report_write(fa_report *r, const char *path, double seconds, fa_error *err);
void fa_report_free(fa_report *r);

/* Reads a report and checks its structure: "fa_report": 1, summary, failures, cases. Messages name the file
 * and the JSON path. *root is owned by the caller. */
fa_status fa_report_load(const char *path, struct cJSON **root, fa_error *err);
/* The same for text with a NUL at text[n_bytes]; path names it in messages. */
fa_status fa_report_parse(const char *text, size_t n_bytes, const char *path, struct cJSON **root,
                          fa_error *err);
/* The counts of a loaded report, and its cases by kernel. */
void fa_report_read_summary(const struct cJSON *root, fa_summary *out);
/* Checks the structure only. */
fa_status fa_report_check(const char *path, const struct cJSON *root, fa_error *err);

/* JUnit XML of one (merged) report: one testsuite, a testcase per case with the backend as its class. */
fa_status fa_report_write_junit(const struct cJSON *root, const char *path, fa_error *err);

#endif
