/* Merges reports: concatenates cases and failures and adds up counts; the header is the first one's.
 *
 * The reports are read entry by entry and stay where they are; of each case that is kept some hundred bytes are held,
 * and of the failures where they are. What is needed again is read again.
 *
 * A result that is in several reports appears once, and counts once: shards overlapped, or a run was
 * repeated. Two results are of the same case if they have the same "record" (the recipe and, of a recorded
 * run, the file) and name, and the same backend, device and driver; if a report has the case k times, each is
 * compared with those of the same number in the others. Two results are the same if everything is equal
 * except times and paths. If they differ, both stay, and "contradictions" in the merged report lists them:
 *   {"name", "backend", "results": [{"report": path, "state", "worst_ratio"}, ...]}
 * Results of two different kernels for one case do not contradict each other: both stay. Entries without a
 * record, from older versions, all stay.
 *
 * Of several reports, "run", "finished", "baseline" and "tier" are dropped. "coverage" and "tried" are added up, and dropped if a result is
 * in several reports. "kernels" is counted again, and so is "require", if all reports require the same; else it is
 * dropped. "untrusted" holds for all reports, with "parts" for each of them (report/untrusted/parts.h); of a backend with
 * several contracts, "contracts" has the one that claims least. */
#ifndef FA_REPORT_MERGE_STREAMED_H
#define FA_REPORT_MERGE_STREAMED_H

#include "report/json.h"

struct cJSON;

/* A report: a file, or a text that holds one (it is copied). The path must outlive what is made of it. */
typedef struct fa_merge_source {
  const char *path, *text; /* text NULL: the file is read; "-": stdin */
  size_t n;                /* bytes of the text */
} fa_merge_source;

/* A case that is kept. The trees are freed when the visitor returns, which may change them. */
typedef struct fa_merged_case {
  struct cJSON *entry, *failure; /* failure: NULL after a pass or a skip, or if the report has none for it */
  int64_t place;                 /* of the failure among all failures; -1: none */
} fa_merged_case;
typedef fa_status fa_merged_visit(void *ctx, const fa_merged_case *c, fa_error *err);

typedef struct fa_merged fa_merged;

/* Reads n >= 1 reports and checks their structure, as fa_report_load does. visit sees every case that is kept, in
 * order; it may be NULL. On failure nothing is left. */
fa_status fa_merge_open(const fa_merge_source *source, int n, fa_merged_visit *visit, void *ctx,
                        fa_merged **out, fa_error *err);
void fa_merged_free(fa_merged *m);

/* The merged report without the items of "cases" and "failures", to be read, and changed as by the caller. */
struct cJSON *fa_merged_head(fa_merged *m);
const fa_kernel_counts *fa_merged_kernels(const fa_merged *m);
/* From now on every time is zero, in what is written, visited and in the head. */
void fa_merged_zero_times(fa_merged *m);

/* Reads failure `place` again; the caller frees it. NULL: it cannot be read. */
struct cJSON *fa_merged_failure(fa_merged *m, int64_t place);
/* Reads all cases that are kept again. */
fa_status fa_merged_each(fa_merged *m, fa_merged_visit *visit, void *ctx, fa_error *err);
/* The whole report as one tree, for what needs it so: five kilobytes a case. The caller frees *root. */
fa_status fa_merged_tree(fa_merged *m, struct cJSON **root, fa_error *err);
/* Writes the merged report. Changes the head: numbers in it become text. */
fa_status fa_merged_write(fa_merged *m, const char *path, fa_error *err);
/* JUnit XML of it, as fa_report_write_junit of a tree. */
fa_status fa_merged_write_junit(fa_merged *m, const char *path, fa_error *err);

#endif
