/* The part of the page that needs no JavaScript: its head with the counts, and, where there is no JavaScript, tables of
 * the failures and the kernels. */
#include "report/html/parts.h"

#include "report/claims.h"
#include "report/kernels.h"
#include "report/untrusted/facts.h"

#include <stdlib.h>
#include <string.h>

#define MOST_FAILURES 500

/* A number with four digits, or a string "inf" or "nan" in place of one. */
static void put_value(FILE *out, const cJSON *v) {
  if (cJSON_IsString(v)) fa_report_put_markup(out, v->valuestring);
  if (cJSON_IsNumber(v)) fprintf(out, "%.4g", v->valuedouble);
}

/* ---- the head ---- */

static void put_count(FILE *out, const cJSON *summary, const char *key, const char *word, bool always) {
  const double n = fa_report_number(summary, key);
  if (n > 0 || always)
    fprintf(out, "<li class=\"count %s\" data-n=\"%.0f\"><b>%.0f</b> %s</li>\n", key, n, n, word);
}

static void put_counts(FILE *out, const cJSON *summary) {
  fputs("<ul class=\"counts\">\n", out);
  put_count(out, summary, "failed", "failed", true);
  put_count(out, summary, "error", "errors", false);
  put_count(out, summary, "waived", "waived", false);
  put_count(out, summary, "passed", "passed", true);
  put_count(out, summary, "skipped", "skipped", true);
  put_count(out, summary, "sampled", "judged in a sample", false);
  fputs("</ul>\n", out);
}

static void put_labelled(FILE *out, const char *label, const char *text) {
  if (!*text) return;
  fprintf(out, "<dt>%s</dt><dd>", label);
  fa_report_put_markup(out, text);
  fputs("</dd>\n", out);
}

/* What a kernel does not claim is not among the results, so it stands above them. */
static void put_not_claimed(FILE *out, const cJSON *root) {
  fa_not_claimed row[FA_NOT_CLAIMED_ROWS];
  const cJSON *contract;
  cJSON_ArrayForEach(contract, fa_report_at(root, "contracts")) {
    const int n = fa_not_claimed_rows(contract, row);
    if (n == 0) continue;
    fputs("<section class=\"notclaimed\">\n<h2>Not claimed by ", out);
    fa_report_put_markup(out, contract->string);
    fputs(", and so not judged</h2>\n<dl>\n", out);
    for (int i = 0; i < n; ++i) put_labelled(out, row[i].what, row[i].text);
    fputs("</dl>\n</section>\n", out);
  }
}

/* By which rules a kernel that nobody trusts was judged. */
static void put_rules(FILE *out, const cJSON *root) {
  fa_untrusted_fact fact[FA_UNTRUSTED_FACTS];
  const int n = fa_untrusted_facts(root, fact);
  if (n == 0) return;
  fputs("<section class=\"notclaimed\">\n<h2>Untrusted</h2>\n<dl>\n", out);
  for (int i = 0; i < n; ++i) put_labelled(out, fact[i].label, fact[i].text);
  fputs("</dl>\n</section>\n", out);
}

void fa_page_put_head(FILE *out, const cJSON *root) {
  const cJSON *summary = fa_report_at(root, "summary"), *tool = fa_report_at(root, "tool"),
              *backend = fa_report_at(root, "backend");
  fprintf(out, "<header>\n<h1>fa-verify <span>%.0f cases in %.4g s</span></h1>\n",
          fa_report_number(summary, "total"), fa_report_number(root, "seconds"));
  put_counts(out, summary);
  fputs("<dl class=\"facts\">\n", out);
  put_labelled(out, "backend", fa_report_string(backend, "name"));
  put_labelled(out, "device", fa_report_string(backend, "device"));
  put_labelled(out, "driver", fa_report_string(backend, "driver"));
  put_labelled(out, "started", fa_report_string(root, "started"));
  put_labelled(out, "version", fa_report_string(tool, "version"));
  put_labelled(out, "revision", fa_report_string(tool, "git"));
  put_labelled(out, "command", fa_report_string(root, "command"));
  fputs("</dl>\n", out);
  put_rules(out, root);
  put_not_claimed(out, root);
  fputs("</header>\n", out);
}

/* ---- failures ---- */

static void put_worst(FILE *out, const cJSON *tensor) {
  const cJSON *w, *i;
  static const char *const keys[] = {"got", "want", "err", "bound", "ratio"};
  fputs("<table><tr><th>index</th><th>got</th><th>want</th><th>err</th><th>bound</th><th>ratio</th></tr>\n",
        out);
  cJSON_ArrayForEach(w, fa_report_at(tensor, "worst")) {
    const char *separator = "[";
    fputs("<tr><td>", out);
    cJSON_ArrayForEach(i, fa_report_at(w, "index")) {
      fputs(separator, out);
      put_value(out, i);
      separator = ",";
    }
    fputs("]</td>", out);
    for (int k = 0; k < 5; ++k) {
      fputs("<td>", out);
      put_value(out, fa_report_at(w, keys[k]));
      fputs("</td>", out);
    }
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void put_wrong(FILE *out, const cJSON *t) {
  fprintf(out, "%.0f of %.0f elements wrong, at worst ", fa_report_number(t, "bad"),
          fa_report_number(t, "count"));
  put_value(out, fa_report_at(t, "worst_ratio"));
  fputs(" times the bound; ", out);
}

static void put_tensor(FILE *out, const cJSON *t) {
  if (!cJSON_IsTrue(fa_report_at(t, "failed"))) return;
  const bool wrong = fa_report_number(t, "bad") > 0;
  const char *why = fa_report_string(fa_report_at(t, "statistics"), "why"),
             *where = fa_report_string(fa_report_at(t, "where"), "text"),
             *vacuous = fa_report_string(t, "vacuous");
  fputs("<p><b>", out);
  fa_report_put_markup(out, fa_report_string(t, "name"));
  fputs("</b>: ", out);
  if (wrong) put_wrong(out, t);
  fa_report_put_markup(out, wrong      ? where
                            : *vacuous ? "the bound would let pass: "
                            : *why     ? why
                                       : "its errors are not those of rounding");
  fa_report_put_markup(out, wrong ? "" : vacuous);
  fputs("</p>\n", out);
  if (cJSON_GetArraySize(fa_report_at(t, "worst")) > 0) put_worst(out, t);
}

static void put_explanations(FILE *out, const cJSON *failure) {
  const cJSON *e;
  cJSON_ArrayForEach(e, fa_report_at(failure, "explained_by")) {
    fputs("<p>explained by: ", out);
    fa_report_put_markup(out, fa_report_string(e, "text"));
    fprintf(out, " (%.4g %% of %.0f elements)</p>\n", 100 * fa_report_number(e, "share"),
            fa_report_number(e, "wrong"));
  }
}

static void put_code(FILE *out, const char *text) {
  if (!text || !*text) return;
  fputs("<pre>", out);
  fa_report_put_markup(out, text);
  fputs("</pre>\n", out);
}

static void put_failure(FILE *out, const cJSON *root, const cJSON *f) {
  static const char *const words[] = {"state", "name", "backend", "kernel", "reason", "notes"};
  const cJSON *t;
  fputs("<details open><summary>", out);
  for (size_t k = 0; k < sizeof words / sizeof *words; ++k) {
    fa_report_put_markup(out, fa_report_string(f, words[k]));
    fputs(k + 1 < sizeof words / sizeof *words ? " " : "</summary>\n", out);
  }
  cJSON_ArrayForEach(t, fa_report_at(f, "tensors")) put_tensor(out, t);
  put_explanations(out, f);
  char *command = fa_page_command(root, f, false);
  put_code(out, command);
  free(command);
  if (cJSON_IsObject(fa_report_at(f, "shrunk"))) {
    fputs("<p>shrunk:</p>\n", out);
    put_code(out, fa_report_string(fa_report_at(f, "shrunk"), "repro"));
  }
  fputs("</details>\n", out);
}

/* ---- kernels ---- */

static void put_kernels(FILE *out, const cJSON *root) {
  fa_kernel_counts counts = {0};
  fa_kernel_counts_add_cases(&counts, fa_report_at(root, "cases"));
  fputs("<h2>Kernels</h2>\n<table><tr><th>kernel</th><th>passed</th><th>failed</th><th>skipped</th>"
        "<th>error</th><th>waived</th></tr>\n",
        out);
  for (int i = 0; i < counts.n; ++i) {
    const fa_kernel_row *k = &counts.row[i];
    const int64_t n[] = {k->passed, k->failed, k->skipped, k->error, k->waived};
    fputs("<tr><td>", out);
    fa_report_put_markup(out, k->name);
    fputs("</td>", out);
    for (int c = 0; c < 5; ++c) fprintf(out, "<td>%lld</td>", (long long)n[c]);
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

void fa_page_put_plain(FILE *out, const cJSON *root) {
  const cJSON *f;
  int n = 0;
  fputs("<p>Pictures, filters and the table of all cases need JavaScript.</p>\n<h2>Failures</h2>\n", out);
  if (cJSON_GetArraySize(fa_report_at(root, "failures")) == 0) fputs("<p>None.</p>\n", out);
  cJSON_ArrayForEach(f, fa_report_at(root, "failures")) {
    if (n++ == MOST_FAILURES) break;
    put_failure(out, root, f);
  }
  if (n > MOST_FAILURES) fprintf(out, "<p>The first %d failures are shown.</p>\n", MOST_FAILURES);
  put_kernels(out, root);
}
