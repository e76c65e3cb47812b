/* JUnit XML: what continuous-integration servers read. */
#include "report/report_json.h"
#include "report/report_printed.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <string.h>

/* Escapes markup; characters that XML 1.0 cannot hold become '?'. */
static void put_xml(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
    if (*c == '&')
      fputs("&amp;", out);
    else if (*c == '<')
      fputs("&lt;", out);
    else if (*c == '>')
      fputs("&gt;", out);
    else if (*c == '"')
      fputs("&quot;", out);
    else if (*c == '\n' || *c == '\t')
      fprintf(out, "&#%d;", *c);
    else if (*c < 0x20 || *c == 0x7f)
      fputc('?', out);
    else
      fputc(*c, out);
  }
}

static const char *string_at(const cJSON *o, const char *key) {
  const cJSON *s = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsString(s) ? s->valuestring : "";
}

static double number_at(const cJSON *o, const char *key) {
  const cJSON *n = cJSON_GetObjectItemCaseSensitive(o, key);
  return cJSON_IsNumber(n) ? n->valuedouble : 0;
}

/* The message of a failure: its reason and what each bad tensor says. */
static void put_failure_text(FILE *out, const cJSON *failure) {
  put_xml(out, string_at(failure, "reason"));
  const cJSON *t;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(t, "failed"))) continue;
    put_xml(out, " ");
    put_xml(out, string_at(t, "name"));
    fprintf(out, ": %.0f of %.0f bad. ", number_at(t, "bad"), number_at(t, "count"));
    put_xml(out, string_at(cJSON_GetObjectItemCaseSensitive(t, "where"), "text"));
    put_xml(out, string_at(t, "vacuous"));
  }
}

/* failures stand in the order of their cases, so that one walk over both pairs them. */
static void put_case(FILE *out, const cJSON *c, const cJSON *failure) {
  const char *state = string_at(c, "state");
  fputs("    <testcase classname=\"", out);
  put_xml(out, string_at(c, "backend"));
  fputs("\" name=\"", out);
  put_xml(out, string_at(c, "name"));
  fprintf(out, "\" time=\"%.3f\">", number_at(c, "seconds"));
  if (strcmp(state, "SKIP") == 0) {
    fputs("<skipped message=\"", out);
    put_xml(out, string_at(c, "reason"));
    fputs("\"/>", out);
  } else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c, "waived"))) {
    fputs("<skipped message=\"", out);
    put_xml(out, string_at(c, "waiver"));
    fputs("\"/>", out);
  } else if (strcmp(state, "PASS") != 0) {
    const char *tag = strcmp(state, "ERROR") == 0 ? "error" : "failure";
    fprintf(out, "<%s type=\"", tag);
    put_xml(out, state);
    fputs("\" message=\"", out);
    put_failure_text(out, failure);
    fputs("\">", out);
    put_xml(out, string_at(failure, "repro"));
    fprintf(out, "</%s>", tag);
  }
  fputs("</testcase>\n", out);
}

static void put_document(FILE *out, const cJSON *root) {
  const cJSON *summary = cJSON_GetObjectItemCaseSensitive(root, "summary");
  const cJSON *backend = cJSON_GetObjectItemCaseSensitive(root, "backend");
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"fa-verify ", out);
  put_xml(out, string_at(backend, "name"));
  fprintf(out,
          "\" tests=\"%.0f\" failures=\"%.0f\" errors=\"%.0f\" skipped=\"%.0f\" time=\"%.3f\" timestamp=\"",
          number_at(summary, "total"), number_at(summary, "failed"), number_at(summary, "error"),
          number_at(summary, "skipped") + number_at(summary, "waived"), number_at(root, "seconds"));
  char started[64];
  snprintf(started, sizeof started, "%s", string_at(root, "started"));
  size_t n = strlen(started);
  if (n && started[n - 1] == 'Z') started[n - 1] = 0; /* JUnit's timestamps have no zone */
  put_xml(out, started);
  fputs("\">\n", out);
  const cJSON *failure = NULL, *c;
  const cJSON *failures = cJSON_GetObjectItemCaseSensitive(root, "failures");
  if (failures) failure = failures->child;
  cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(root, "cases")) {
    const char *state = string_at(c, "state");
    bool good = strcmp(state, "PASS") == 0 || strcmp(state, "SKIP") == 0;
    put_case(out, c, good ? NULL : failure);
    if (!good && failure) failure = failure->next;
  }
  fputs("  </testsuite>\n</testsuites>\n", out);
}

fa_status fa_report_write_junit(const cJSON *root, const char *path, fa_error *err) {
  return fa_report_write_printed(root, path, put_document, err);
}
