#include "report/ci/annotations.h"

#include "report/place.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_MOST 10 /* commands of a kind that GitHub keeps of a step */

fa_status fa_annotations_check(const char *site, fa_error *err) {
  if (strcmp(site, "github") == 0) return FA_OK;
  return fa_fail(
      err, FA_ERR_INPUT,
      "--annotations %s: github is allowed; GitLab and others read `report OUT.json --junit OUT.xml`", site);
}

/* ---- escaping ---- */

/* In a property, what separates properties is escaped too. */
static void put_escaped(FILE *out, const char *text, bool property) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
    if (strchr(property ? "%\r\n:," : "%\r\n", *c))
      fprintf(out, "%%%02X", *c);
    else
      fputc(*c < 0x20 && *c != '\t' ? '?' : *c, out);
  }
}

static void put_text(FILE *out, const char *text) {
  put_escaped(out, text, false);
}

static const char *relative(const char *file, const char *folder) {
  const size_t n = strlen(folder);
  return n > 1 && strncmp(file, folder, n) == 0 && file[n] == '/' ? file + n + 1 : file;
}

/* "::error file=a.py,line=3,title=fa-verify%3A what::", after which comes the message. */
static void put_command(FILE *out, const char *command, const fa_place *place, const char *folder,
                        const char *title) {
  fprintf(out, "::%s ", command);
  if (place && place->file[0]) {
    fputs("file=", out);
    put_escaped(out, relative(place->file, folder), true);
    if (place->line) fprintf(out, ",line=%ld", place->line);
    fputc(',', out);
  }
  fputs("title=", out);
  put_escaped(out, "fa-verify: ", true);
  put_escaped(out, title, true);
  fputs("::", out);
}

/* ---- causes ---- */

static const cJSON *smallest_failure(const cJSON *root, const cJSON *group) {
  const double k = fa_report_number(fa_report_at(group, "smallest"), "failure");
  const cJSON *failures = fa_report_at(root, "failures");
  return k >= 0 && k < cJSON_GetArraySize(failures) ? cJSON_GetArrayItem(failures, (int)k) : NULL;
}

static void put_line(FILE *out, const char *label, const char *text) {
  if (!*text) return;
  put_text(out, "\n");
  put_text(out, label);
  put_text(out, text);
}

static void put_cause(FILE *out, const cJSON *root, const cJSON *group, const char *folder) {
  const cJSON *failure = smallest_failure(root, group), *predicate = fa_report_at(group, "predicate");
  const fa_place place = fa_report_place(root, failure);
  const double n = fa_report_number(group, "count");
  put_command(out, "error", &place, folder, fa_report_string(group, "title"));
  fprintf(out, "%.0f of %.0f cases fail so: ", n, fa_report_number(fa_report_at(root, "summary"), "total"));
  put_text(out, fa_report_string(group, "class"));
  if (strcmp(fa_report_string(predicate, "kind"), "separates") == 0)
    put_line(out, "if ", fa_report_string(predicate, "text"));
  put_line(out, "backend: ", fa_report_string(failure, "backend"));
  put_line(out, "smallest: ", fa_report_string(fa_report_at(group, "smallest"), "name"));
  put_line(out, "in ", fa_report_string(failure, "place"));
  put_line(out, "again: ", fa_report_string(group, "repro"));
  fputc('\n', out);
}

/* Returns the number of commands. */
static int put_causes(FILE *out, const cJSON *root, const char *folder) {
  const cJSON *groups = fa_report_at(root, "groups"), *group;
  const int n = cJSON_GetArraySize(groups), shown = n > AT_MOST ? AT_MOST - 1 : n;
  int k = 0;
  cJSON_ArrayForEach(group, groups) {
    if (k++ < shown) put_cause(out, root, group, folder);
  }
  if (shown == n) return n;
  put_command(out, "error", NULL, folder, "more causes");
  fprintf(out, "%d more causes are in the report and in the job's log\n", n - shown);
  return AT_MOST;
}

/* ---- the rest ---- */

/* One for all cases that could not be run to their end. */
static void put_errors(FILE *out, const cJSON *root, const char *folder) {
  const double n = fa_report_number(fa_report_at(root, "summary"), "error");
  const cJSON *failure;
  if (n == 0) return;
  cJSON_ArrayForEach(failure, fa_report_at(root, "failures")) {
    if (strcmp(fa_report_string(failure, "state"), "ERROR") != 0) continue;
    const fa_place place = fa_report_place(root, failure);
    put_command(out, "error", &place, folder, "not judged for want of what it needs");
    fprintf(out, "%.0f case%s, the first: ", n, n == 1 ? "" : "s");
    put_text(out, fa_report_string(failure, "name"));
    put_text(out, ": ");
    put_text(out, fa_report_string(failure, "reason"));
    fputc('\n', out);
    return;
  }
}

/* What is worse than in the baseline and is no failure: one for each kind. */
static void put_worse(FILE *out, const cJSON *root, const char *folder, const char *kind, const char *title) {
  const cJSON *item;
  int n = 0;
  cJSON_ArrayForEach(item, fa_report_at(fa_report_at(root, "baseline"), "items")) {
    if (strcmp(fa_report_string(item, "kind"), kind) != 0 || n++ >= AT_MOST) continue;
    const fa_place place = fa_report_place(root, item);
    if (n == 1) put_command(out, "error", &place, folder, title);
    put_text(out, n == 1 ? "" : "\n");
    put_text(out, fa_report_string(item, "name"));
    put_text(out, ": ");
    put_text(out, fa_report_string(item, "text"));
  }
  if (n > AT_MOST) fprintf(out, "%%0Aand %d more", n - AT_MOST);
  if (n) fputc('\n', out);
}

static void put_unmet(FILE *out, const cJSON *root, const char *folder) {
  const cJSON *item;
  int n = 0;
  cJSON_ArrayForEach(item, fa_report_at(fa_report_at(root, "require"), "items")) {
    if (cJSON_IsTrue(fa_report_at(item, "met")) || n++ >= AT_MOST) continue;
    put_command(out, "warning", NULL, folder, "required, but not judged");
    put_text(out, fa_report_string(item, "what"));
    put_text(out, " ");
    put_text(out, fa_report_string(item, "wanted"));
    fprintf(out, ": %.0f of %.0f cases. ", fa_report_number(item, "judged"), fa_report_number(item, "cases"));
    put_text(out, fa_report_string(item, "reason"));
    fputc('\n', out);
  }
}

static void put_notice(FILE *out, const cJSON *root, const char *folder) {
  const cJSON *s = fa_report_at(root, "summary");
  put_command(out, "notice", NULL, folder, "summary");
  fprintf(out, "%.0f cases: %.0f passed, %.0f failed, %.0f skipped, %.0f in error",
          fa_report_number(s, "total"), fa_report_number(s, "passed"), fa_report_number(s, "failed"),
          fa_report_number(s, "skipped"), fa_report_number(s, "error"));
  if (fa_report_number(s, "known") > 0) fprintf(out, ", %.0f known", fa_report_number(s, "known"));
  fputs(" (", out);
  put_text(out, fa_report_string(fa_report_at(root, "backend"), "name"));
  fputs(")\n", out);
}

void fa_annotations_print(FILE *out, const cJSON *root, const char *folder) {
  if (put_causes(out, root, folder) < AT_MOST) put_errors(out, root, folder);
  put_worse(out, root, folder, "not_judged", "judged in the baseline, but not any more");
  put_worse(out, root, folder, "slower", "slower than in the baseline");
  put_unmet(out, root, folder);
  put_notice(out, root, folder);
}

fa_status fa_annotations_write(FILE *out, const cJSON *root, fa_error *err) {
  const char *folder = getenv("GITHUB_WORKSPACE"), *summary = getenv("GITHUB_STEP_SUMMARY");
  char here[4096] = "";
  if ((!folder || !*folder) && !getcwd(here, sizeof here)) here[0] = 0;
  fa_annotations_print(out, root, folder && *folder ? folder : here);
  return summary && *summary ? fa_job_summary_append(summary, root, err) : FA_OK;
}
