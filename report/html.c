/* A report as one HTML page: no other files, no network. All text of the report is escaped. */
#include "report/json.h"
#include "report/kernels.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most rows in the table of all cases; failures are all shown. */
#define MAX_CASE_ROWS 5000

static const char page_head[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n<title>fa-verify report</title>\n<style>\n"
    "body{font:15px/1.4 sans-serif;margin:1.5em auto;max-width:75em;padding:0 "
    "1em;color:#222;background:#fff}\n"
    "table{border-collapse:collapse;margin:.5em 0}td,th{padding:.15em "
    ".7em;text-align:left;vertical-align:top;"
    "border-bottom:1px solid #ddd}\n"
    "td.n{text-align:right}code,pre{font:13px/1.35 "
    "monospace;background:#f4f4f4}pre{padding:.5em;overflow:auto;"
    "white-space:pre-wrap;overflow-wrap:anywhere}\n"
    ".FAIL{color:#a00}.PASS{color:#070}.SKIP{color:#850}summary{cursor:pointer}"
    "input{font:inherit;width:30em;max-width:100%;margin:.5em 0}\n"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}code,pre{background:#262626}"
    "td,th{border-color:#444}.FAIL{color:#f77}.PASS{color:#7d7}.SKIP{color:#db6}}\n"
    "</style></head><body>\n";

static const char page_foot[] =
    "<script>\nfor (const box of document.querySelectorAll('input'))\n"
    "  box.oninput = () => {\n    const words = box.value.toLowerCase().split(/\\s+/);\n"
    "    for (const row of document.querySelectorAll('#' + box.dataset.rows + ' .row'))\n"
    "      row.hidden = !words.every(w => row.textContent.toLowerCase().includes(w));\n  };\n"
    "</script>\n</body></html>\n";

static const cJSON *get(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* A number, or a string "inf" or "nan" in place of one. */
static void put_value(FILE *out, const cJSON *v) {
  if (cJSON_IsString(v)) fa_report_put_markup(out, v->valuestring);
  if (cJSON_IsNumber(v)) fprintf(out, "%.9g", v->valuedouble);
}

static void put_cell(FILE *out, const cJSON *o, const char *key) {
  fputs("<td class=\"n\">", out);
  put_value(out, get(o, key));
  fputs("</td>", out);
}

static void put_labelled(FILE *out, const char *label, const char *text) {
  if (!*text) return;
  fprintf(out, "<tr><th>%s</th><td>", label);
  fa_report_put_markup(out, text);
  fputs("</td></tr>\n", out);
}

static void put_code(FILE *out, const char *label, const char *text) {
  if (!*text) return;
  fprintf(out, "<p>%s</p><pre>", label);
  fa_report_put_markup(out, text);
  fputs("</pre>\n", out);
}

static void put_case(FILE *out, const char *label, const cJSON *recipe) {
  char *text = recipe ? cJSON_PrintUnformatted(recipe) : NULL;
  if (text) put_code(out, label, text);
  cJSON_free(text);
}

/* ---- failures ---- */

static void put_worst(FILE *out, const cJSON *tensor) {
  const cJSON *w, *i;
  if (cJSON_GetArraySize(get(tensor, "worst")) == 0) return;
  fputs("<table><tr><th>index</th><th>got</th><th>want</th><th>err</th><th>bound</th><th>ratio</th></tr>\n",
        out);
  cJSON_ArrayForEach(w, get(tensor, "worst")) {
    const char *separator = "[";
    fputs("<tr><td>", out);
    cJSON_ArrayForEach(i, get(w, "index")) {
      fputs(separator, out);
      put_value(out, i);
      separator = ",";
    }
    fputs("]</td>", out);
    static const char *const keys[] = {"got", "want", "err", "bound", "ratio"};
    for (int k = 0; k < 5; ++k) put_cell(out, w, keys[k]);
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void put_tensor(FILE *out, const cJSON *t) {
  const bool failed = cJSON_IsTrue(get(t, "failed"));
  fprintf(out, "<p><b class=\"%s\">", failed ? "FAIL" : "PASS");
  fa_report_put_markup(out, fa_report_string(t, "name"));
  fprintf(out, "</b>%s: %.0f of %.0f bad", cJSON_IsTrue(get(t, "end_to_end")) ? " (end to end)" : "",
          fa_report_number(t, "bad"), fa_report_number(t, "count"));
  if (fa_report_number(t, "class_bad") > 0)
    fprintf(out, ", %.0f NaN/Inf class", fa_report_number(t, "class_bad"));
  if (fa_report_number(t, "unwritten") > 0)
    fprintf(out, ", %.0f never written", fa_report_number(t, "unwritten"));
  fputs(", worst ratio ", out);
  put_value(out, get(t, "worst_ratio"));
  const char *more[] = {fa_report_string(get(t, "where"), "text"), fa_report_string(t, "vacuous")};
  for (int i = 0; i < 2; ++i) {
    if (!*more[i]) continue;
    fputs(i ? "; the bound would let pass: " : "; ", out);
    fa_report_put_markup(out, more[i]);
  }
  fputs("</p>\n", out);
  if (failed) put_worst(out, t);
}

static void put_shrunk(FILE *out, const cJSON *shrunk) {
  if (!cJSON_IsObject(get(shrunk, "case"))) return;
  put_case(out, "shrunk to", get(shrunk, "case"));
  fputs("<p>", out);
  fa_report_put_markup(out, fa_report_string(shrunk, "failure"));
  if (*fa_report_string(shrunk, "reproduced")) fputs(", in ", out);
  fa_report_put_markup(out, fa_report_string(shrunk, "reproduced"));
  fprintf(out, " runs, after %.0f runs</p>\n", fa_report_number(shrunk, "runs"));
  put_code(out, "run it", fa_report_string(shrunk, "repro"));
}

/* Shows the expressions, which are hard to read escaped in the recipe's JSON, and which gradient belongs to
 * which buffer. */
static void put_expressions(FILE *out, const cJSON *recipe) {
  const cJSON *buffer;
  int k = 0;
  put_labelled(out, "score_mod", fa_report_string(recipe, "score_mod"));
  put_labelled(out, "mask_mod", fa_report_string(recipe, "mask_mod"));
  if (!cJSON_IsObject(get(recipe, "buffers"))) return;
  fputs("<tr><th>buffers</th><td>", out);
  cJSON_ArrayForEach(buffer, get(recipe, "buffers")) {
    fputs(k ? ", " : "", out);
    fa_report_put_markup(out, buffer->string);
    fprintf(out, " (dbuffer_%d)", k++);
  }
  fputs("</td></tr>\n", out);
}

static void put_failure(FILE *out, const cJSON *f, int k) {
  const cJSON *t;
  fprintf(out, "<details class=\"row\"><summary>%d <b class=\"FAIL\">", k);
  fa_report_put_markup(out, fa_report_string(f, "state"));
  fputs("</b> ", out);
  fa_report_put_markup(out, fa_report_string(f, "name"));
  fputs(" <code>", out);
  fa_report_put_markup(out, fa_report_string(f, "backend"));
  fputs("</code> ", out);
  fa_report_put_markup(out, fa_report_string(f, "reason"));
  cJSON_ArrayForEach(t, get(f, "tensors")) {
    if (!cJSON_IsTrue(get(t, "failed"))) continue;
    fputs(" <b>", out);
    fa_report_put_markup(out, fa_report_string(t, "name"));
    fprintf(out, "</b> %.0f of %.0f", fa_report_number(t, "bad"), fa_report_number(t, "count"));
  }
  fputs("</summary>\n<table>\n", out);
  put_labelled(out, "kernel", fa_report_string(f, "kernel"));
  put_labelled(out, "backward", fa_report_string(f, "backward_kernel"));
  put_labelled(out, "profile", fa_report_string(f, "profile"));
  put_labelled(out, "schedule seed", fa_report_string(f, "schedule_seed"));
  put_labelled(out, "file", fa_report_string(f, "file"));
  put_labelled(out, "notes", fa_report_string(f, "notes"));
  put_labelled(out, "tensors", fa_report_string(f, "dump"));
  put_expressions(out, get(f, "case"));
  fputs("</table>\n", out);
  cJSON_ArrayForEach(t, get(f, "tensors")) put_tensor(out, t);
  put_code(out, "run it again", fa_report_string(f, "repro"));
  put_case(out, "case", get(f, "case"));
  put_shrunk(out, get(f, "shrunk"));
  fputs("</details>\n", out);
}

/* ---- the page ---- */

static void put_summary(FILE *out, const cJSON *root) {
  static const char *const keys[] = {"total", "passed", "failed", "skipped", "error"};
  const cJSON *summary = get(root, "summary"), *reason;
  fputs("<h1>fa-verify</h1>\n<table><tr>", out);
  for (int i = 0; i < 5; ++i) fprintf(out, "<th>%s</th>", keys[i]);
  fputs("</tr><tr>", out);
  for (int i = 0; i < 5; ++i) put_cell(out, summary, keys[i]);
  fputs("</tr></table>\n<table>\n", out);
  put_labelled(out, "command", fa_report_string(root, "command"));
  put_labelled(out, "version", fa_report_string(get(root, "tool"), "version"));
  put_labelled(out, "revision", fa_report_string(get(root, "tool"), "git"));
  put_labelled(out, "backend", fa_report_string(get(root, "backend"), "name"));
  put_labelled(out, "device", fa_report_string(get(root, "backend"), "device"));
  put_labelled(out, "driver", fa_report_string(get(root, "backend"), "driver"));
  put_labelled(out, "started", fa_report_string(root, "started"));
  fprintf(out, "<tr><th>seconds</th><td>%.3f</td></tr>\n", fa_report_number(root, "seconds"));
  cJSON_ArrayForEach(reason, get(summary, "skip_reasons")) {
    fputs("<tr><th>skipped</th><td>", out);
    put_value(out, reason);
    fputs(": ", out);
    fa_report_put_markup(out, reason->string ? reason->string : "");
    fputs("</td></tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void put_kernels(FILE *out, const cJSON *root) {
  fa_kernel_counts counts = {0};
  fa_kernel_counts_add_cases(&counts, get(root, "cases"));
  fputs("<h2>Kernels</h2>\n<table><tr><th>kernel</th><th>passed</th><th>failed</th><th>skipped</th>"
        "<th>error</th><th>waived</th></tr>\n",
        out);
  for (int i = 0; i < counts.n; ++i) {
    const fa_kernel_row *k = &counts.row[i];
    const int64_t n[] = {k->passed, k->failed, k->skipped, k->error, k->waived};
    fputs("<tr><td>", out);
    fa_report_put_markup(out, k->name);
    fputs("</td>", out);
    for (int c = 0; c < 5; ++c) fprintf(out, "<td class=\"n\">%lld</td>", (long long)n[c]);
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
}

static void put_cases(FILE *out, const cJSON *root) {
  const cJSON *c;
  int n = 0;
  fputs("<h2>Cases</h2>\n<input data-rows=\"cases\" placeholder=\"words that a case must have\">\n"
        "<table id=\"cases\"><tr><th>state</th><th>name</th><th>backend</th><th>worst "
        "ratio</th><th>s</th></tr>\n",
        out);
  cJSON_ArrayForEach(c, get(root, "cases")) {
    const char *state = fa_report_string(c, "state");
    if (n++ == MAX_CASE_ROWS) break;
    fprintf(out, "<tr class=\"row\"><td class=\"%s\">",
            strcmp(state, "PASS") == 0   ? "PASS"
            : strcmp(state, "SKIP") == 0 ? "SKIP"
                                         : "FAIL");
    fa_report_put_markup(out, state);
    fputs("</td><td>", out);
    fa_report_put_markup(out, fa_report_string(c, "name"));
    fputs("</td><td>", out);
    fa_report_put_markup(out, fa_report_string(c, "backend"));
    fputs("</td>", out);
    put_cell(out, c, "worst_ratio");
    put_cell(out, c, "seconds");
    fputs("</tr>\n", out);
  }
  fputs("</table>\n", out);
  if (n > MAX_CASE_ROWS)
    fprintf(out, "<p>%d of %d cases are shown.</p>\n", MAX_CASE_ROWS, cJSON_GetArraySize(get(root, "cases")));
}

static void put_page(FILE *out, const cJSON *root) {
  const cJSON *f;
  int k = 0;
  fputs(page_head, out);
  put_summary(out, root);
  put_kernels(out, root);
  fputs("<h2>Failures</h2>\n", out);
  if (cJSON_GetArraySize(get(root, "failures")) == 0)
    fputs("<p>None.</p>\n", out);
  else
    fputs("<input data-rows=\"failures\" placeholder=\"words that a failure must have\">\n", out);
  fputs("<div id=\"failures\">\n", out);
  cJSON_ArrayForEach(f, get(root, "failures")) put_failure(out, f, k++);
  fputs("</div>\n", out);
  put_cases(out, root);
  fputs(page_foot, out);
}

fa_status fa_report_write_html(const cJSON *root, const char *path, fa_error *err) {
  return fa_report_write_printed(root, path, put_page, err);
}
