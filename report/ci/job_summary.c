/* The table that GitHub shows on the page of a job. */
#include "report/ci/annotations.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <string.h>

enum { MOST_CAUSES = 50 };

/* Text for a cell of a table, in which nothing is markup. */
static void put_cell(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
    if (strchr("&<>|*_`[]\\~", *c))
      fprintf(out, "&#%d;", *c);
    else
      fputc(*c < 0x20 ? ' ' : *c, out);
  }
}

static void put_counts(FILE *out, const cJSON *root) {
  const cJSON *s = fa_report_at(root, "summary");
  static const char *const keys[] = {"total", "passed", "failed", "known", "skipped", "error"};
  enum { N = sizeof keys / sizeof *keys };
  const bool bad = fa_report_number(s, "failed") + fa_report_number(s, "error") > 0;
  fputs("### fa-verify: ", out);
  put_cell(out, fa_report_string(fa_report_at(root, "backend"), "name"));
  fprintf(out, " %s\n\n|", bad ? "fails" : fa_report_number(s, "passed") > 0 ? "passes" : "was not judged");
  for (int k = 0; k < N; ++k) fprintf(out, " %s |", keys[k]);
  fputs("\n|", out);
  for (int k = 0; k < N; ++k) fputs("---:|", out);
  fputs("\n|", out);
  for (int k = 0; k < N; ++k) fprintf(out, " %.0f |", fa_report_number(s, keys[k]));
  fputs("\n\n", out);
}

static void put_causes(FILE *out, const cJSON *root) {
  const cJSON *groups = fa_report_at(root, "groups"), *group;
  int n = 0;
  if (cJSON_GetArraySize(groups) == 0) return;
  fputs("| cause | cases | if | smallest |\n|---|---:|---|---|\n", out);
  cJSON_ArrayForEach(group, groups) {
    if (n++ == MOST_CAUSES) break;
    fputs("| ", out);
    put_cell(out, fa_report_string(group, "title"));
    fprintf(out, " | %.0f | ", fa_report_number(group, "count"));
    put_cell(out, fa_report_string(fa_report_at(group, "predicate"), "text"));
    fputs(" | ", out);
    put_cell(out, fa_report_string(fa_report_at(group, "smallest"), "name"));
    fputs(" |\n", out);
  }
  fputc('\n', out);
}

static void put_baseline(FILE *out, const cJSON *root) {
  const cJSON *counts = fa_report_at(fa_report_at(root, "baseline"), "counts"), *n;
  const char *separator = "Beside the baseline: ";
  cJSON_ArrayForEach(n, counts) {
    fputs(separator, out);
    put_cell(out, n->string);
    fprintf(out, " %.0f", n->valuedouble);
    separator = ", ";
  }
  if (counts) fputs("\n\n", out);
}

fa_status fa_job_summary_append(const char *path, const cJSON *root, fa_error *err) {
  FILE *out = fopen(path, "a");
  if (!out) return fa_fail(err, FA_ERR_IO, "%s: %s", path, strerror(errno));
  put_counts(out, root);
  put_causes(out, root);
  put_baseline(out, root);
  const bool bad = ferror(out) != 0;
  return fclose(out) == 0 && !bad ? FA_OK : fa_fail(err, FA_ERR_IO, "%s: it cannot be written", path);
}
