/* JUnit XML, which continuous-integration servers read. */
#include "report/junit.h"

#include "report/claims.h"
#include "report/json.h"
#include "report/place.h"
#include "report/printed.h"
#include "report/sampling/record.h"
#include "report/untrusted/facts.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put_explanations(FILE *out, const cJSON *explanations) {
  const char *separator = ". Explained by: ";
  const cJSON *e;
  cJSON_ArrayForEach(e, explanations) {
    fputs(separator, out);
    fa_report_put_markup(out, fa_report_string(e, "text"));
    separator = "; ";
  }
}

/* The message of a failure: its reason, what is wrong with each bad tensor, and what explains it. */
static void put_failure_text(FILE *out, const cJSON *failure) {
  fa_report_put_markup(out, fa_report_string(failure, "reason"));
  const cJSON *t;
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(failure, "tensors")) {
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(t, "failed"))) continue;
    fa_report_put_markup(out, " ");
    fa_report_put_markup(out, fa_report_string(t, "name"));
    fprintf(out, ": %.0f of %.0f bad. ", fa_report_number(t, "bad"), fa_report_number(t, "count"));
    fa_report_put_markup(out, fa_report_string(cJSON_GetObjectItemCaseSensitive(t, "where"), "text"));
    fa_report_put_markup(out, fa_report_string(t, "vacuous"));
    fa_report_put_markup(out, fa_report_string(cJSON_GetObjectItemCaseSensitive(t, "statistics"), "why"));
  }
  put_explanations(out, cJSON_GetObjectItemCaseSensitive(failure, "explained_by"));
}

/* The group of each of n failures, NULL where it is in none; to be freed. NULL: out of memory. */
static const cJSON **groups_by_failure(const cJSON *groups, int64_t n) {
  const cJSON **by = calloc((size_t)n + 1, sizeof *by), *group, *at;
  if (!by) return NULL;
  cJSON_ArrayForEach(group, groups) {
    cJSON_ArrayForEach(at, cJSON_GetObjectItemCaseSensitive(group, "failures")) {
      if (cJSON_IsNumber(at) && at->valuedouble >= 0 && at->valuedouble < (double)n)
        by[(int64_t)at->valuedouble] = group;
    }
  }
  return by;
}

/* Where the case is, if the kernel's own place stands in the attributes. */
static void put_case_place(FILE *out, const cJSON *root, const cJSON *entry) {
  const char *place = fa_report_string(entry, "place");
  if (!*place || !fa_report_at(fa_report_at(root, "sources"), fa_report_string(entry, "backend"))) return;
  fputs(" case: ", out);
  fa_report_put_markup(out, place);
}

static void put_group(FILE *out, const cJSON *group) {
  if (!group) return;
  fprintf(out, " cause %.0f: ", fa_report_number(group, "id"));
  fa_report_put_markup(out, fa_report_string(group, "title"));
}

/* Many readers link a testcase to these. */
static void put_place(FILE *out, const cJSON *root, const cJSON *entry) {
  const fa_place place = fa_report_place(root, entry);
  if (!place.file[0]) return;
  fputs(" file=\"", out);
  fa_report_put_markup(out, place.file);
  fputc('"', out);
  if (place.line) fprintf(out, " line=\"%ld\"", place.line);
}

/* That not all of it was judged: a reader who sees only "passed" must be able to find it. */
static void put_sample(FILE *out, const cJSON *c) {
  char text[FA_SAMPLED_TEXT];
  fa_sampled_entry_text(c, text);
  if (!text[0]) return;
  fputs("<properties><property name=\"sampled\" value=\"", out);
  fa_report_put_markup(out, text);
  fputs("\"/></properties>", out);
}

static void put_case(FILE *out, const cJSON *root, const cJSON *c, const cJSON *failure, const cJSON *group) {
  const char *state = fa_report_string(c, "state");
  fputs("    <testcase classname=\"", out);
  fa_report_put_markup(out, fa_report_string(c, "backend"));
  fputs("\" name=\"", out);
  fa_report_put_markup(out, fa_report_string(c, "name"));
  fprintf(out, "\" time=\"%.3f\"", fa_report_number(c, "seconds"));
  put_place(out, root, failure ? failure : c);
  fputc('>', out);
  put_sample(out, c);
  if (strcmp(state, "SKIP") == 0) {
    fputs("<skipped message=\"", out);
    fa_report_put_markup(out, fa_report_string(c, "reason"));
    fputs("\"/>", out);
  } else if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c, "waived"))) {
    fputs("<skipped message=\"", out);
    fa_report_put_markup(out, fa_report_string(c, "waiver"));
    fputs("\"/>", out);
  } else if (strcmp(state, "PASS") != 0) {
    const char *tag = strcmp(state, "ERROR") == 0 ? "error" : "failure";
    fprintf(out, "<%s type=\"", tag);
    fa_report_put_markup(out, state);
    fputs("\" message=\"", out);
    put_failure_text(out, failure);
    put_group(out, group);
    put_case_place(out, root, c);
    fputs("\">", out);
    fa_report_put_markup(out, fa_report_string(failure, "repro"));
    fprintf(out, "</%s>", tag);
  }
  fputs("</testcase>\n", out);
}

/* What is slower than in the baseline, or not judged any more. */
static int put_worse(FILE *out, const cJSON *items, bool count_only) {
  const cJSON *item;
  int n = 0;
  cJSON_ArrayForEach(item, items) {
    const char *kind = fa_report_string(item, "kind");
    if (strcmp(kind, "fixed") == 0) continue;
    ++n;
    if (count_only) continue;
    fputs("    <testcase classname=\"baseline\" name=\"", out);
    fa_report_put_markup(out, fa_report_string(item, "name"));
    fprintf(out, "\" time=\"0.000\"><failure type=\"%s\" message=\"",
            strcmp(kind, "slower") == 0 ? "SLOWER" : "NOT_JUDGED");
    fa_report_put_markup(out, fa_report_string(item, "text"));
    fputs("\"/></testcase>\n", out);
  }
  return n;
}

static int count_unmet(const cJSON *items) {
  const cJSON *item;
  int n = 0;
  cJSON_ArrayForEach(item, items) n += !cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "met"));
  return n;
}

/* A testcase for each requirement. */
static void put_required(FILE *out, const cJSON *items) {
  const cJSON *item;
  cJSON_ArrayForEach(item, items) {
    fputs("    <testcase classname=\"require\" name=\"", out);
    fa_report_put_markup(out, fa_report_string(item, "what"));
    fputs(" ", out);
    fa_report_put_markup(out, fa_report_string(item, "wanted"));
    fputs("\" time=\"0.000\">", out);
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "met"))) {
      fprintf(out, "<failure type=\"NOT_JUDGED\" message=\"%.0f of %.0f cases were judged. ",
              fa_report_number(item, "judged"), fa_report_number(item, "cases"));
      fa_report_put_markup(out, fa_report_string(item, "reason"));
      fputs("\"/>", out);
    }
    fputs("</testcase>\n", out);
  }
}

/* A skipped testcase for each kind of thing that a kernel does not claim; returns how many there are. */
static int put_not_claimed(FILE *out, const cJSON *root, bool count_only) {
  fa_not_claimed row[FA_NOT_CLAIMED_ROWS];
  const cJSON *contract;
  int n = 0;
  if (!fa_claims_matter(root)) return 0;
  cJSON_ArrayForEach(contract, fa_report_at(root, "contracts")) {
    const int rows = fa_not_claimed_rows(contract, row);
    for (int i = 0; !count_only && i < rows; ++i) {
      fprintf(out,
              "    <testcase classname=\"not claimed\" name=\"%s\" time=\"0.000\"><skipped message=\"not "
              "claimed by ",
              row[i].what);
      fa_report_put_markup(out, contract->string);
      fputs(": ", out);
      fa_report_put_markup(out, row[i].text);
      fputs("\"/></testcase>\n", out);
    }
    n += rows;
  }
  return n;
}

/* What an untrusted kernel claims and no case has tested: a failed testcase for each word, as the run fails for it. */
static void put_untested(FILE *out, const cJSON *claims) {
  const cJSON *word;
  cJSON_ArrayForEach(word, claims) {
    fputs("    <testcase classname=\"untested claim\" name=\"", out);
    fa_report_put_markup(out, cJSON_IsString(word) ? word->valuestring : "");
    fputs("\" time=\"0.000\"><failure type=\"NOT_JUDGED\" message=\"its contract claims it, and no case has "
          "tested "
          "it\"/></testcase>\n",
          out);
  }
}

/* By which rules an untrusted kernel was judged: the layers left out among them. */
static void put_rules(FILE *out, const cJSON *root) {
  fa_untrusted_fact fact[FA_UNTRUSTED_FACTS];
  const int n = fa_untrusted_facts(root, fact);
  if (n == 0) return;
  fputs("    <properties>\n", out);
  for (int i = 0; i < n; ++i) {
    fprintf(out, "      <property name=\"untrusted.%s\" value=\"", fact[i].name);
    fa_report_put_markup(out, fact[i].text);
    fputs("\"/>\n", out);
  }
  fputs("    </properties>\n", out);
}

static void put_head(FILE *out, const cJSON *root) {
  const cJSON *summary = cJSON_GetObjectItemCaseSensitive(root, "summary");
  const cJSON *backend = cJSON_GetObjectItemCaseSensitive(root, "backend");
  const cJSON *required =
      cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(root, "require"), "items");
  const cJSON *items = fa_report_at(fa_report_at(root, "baseline"), "items");
  const int n_worse = put_worse(out, items, true), n_not_claimed = put_not_claimed(out, root, true),
            n_untested = cJSON_GetArraySize(fa_untrusted_failing_claims(root));
  fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"fa-verify ", out);
  fa_report_put_markup(out, fa_report_string(backend, "name"));
  fprintf(out,
          "\" tests=\"%.0f\" failures=\"%.0f\" errors=\"%.0f\" skipped=\"%.0f\" time=\"%.3f\" timestamp=\"",
          fa_report_number(summary, "total") + cJSON_GetArraySize(required) + n_worse + n_not_claimed +
              n_untested,
          fa_report_number(summary, "failed") + count_unmet(required) + n_worse + n_untested,
          fa_report_number(summary, "error"),
          fa_report_number(summary, "skipped") + fa_report_number(summary, "waived") + n_not_claimed,
          fa_report_number(root, "seconds"));
  char started[64];
  snprintf(started, sizeof started, "%s", fa_report_string(root, "started"));
  size_t n = strlen(started);
  if (n && started[n - 1] == 'Z') started[n - 1] = 0; /* JUnit's timestamps have no time zone */
  fa_report_put_markup(out, started);
  fputs("\">\n", out);
  put_rules(out, root);
}

void fa_junit_begin(fa_junit *j, FILE *out, const cJSON *root, int64_t n_failures) {
  *j = (fa_junit){.out = out, .root = root};
  j->group = groups_by_failure(cJSON_GetObjectItemCaseSensitive(root, "groups"), n_failures);
  put_head(out, root);
}

void fa_junit_put_case(fa_junit *j, const cJSON *entry, const cJSON *failure, int64_t place) {
  put_case(j->out, j->root, entry, failure, j->group && failure && place >= 0 ? j->group[place] : NULL);
}

void fa_junit_end(fa_junit *j) {
  put_not_claimed(j->out, j->root, false);
  put_untested(j->out, fa_untrusted_failing_claims(j->root));
  put_required(j->out, fa_report_at(fa_report_at(j->root, "require"), "items"));
  put_worse(j->out, fa_report_at(fa_report_at(j->root, "baseline"), "items"), false);
  fputs("  </testsuite>\n</testsuites>\n", j->out);
  free(j->group);
}

/* Failures are in the order of their cases, so that one pass over both pairs them. */
static void put_document(FILE *out, const cJSON *root) {
  const cJSON *failures = fa_report_at(root, "failures"), *failure = failures ? failures->child : NULL, *c;
  fa_junit junit;
  int64_t k = 0;
  fa_junit_begin(&junit, out, root, cJSON_GetArraySize(failures));
  cJSON_ArrayForEach(c, fa_report_at(root, "cases")) {
    const bool good = fa_report_is_good(c);
    fa_junit_put_case(&junit, c, good ? NULL : failure, k);
    if (!good && failure) failure = failure->next, ++k;
  }
  fa_junit_end(&junit);
}

fa_status fa_report_write_junit(const cJSON *root, const char *path, fa_error *err) {
  return fa_report_write_printed(root, path, put_document, err);
}
