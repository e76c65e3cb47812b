#include "report/causes/print.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

/* Names come from the user: with control characters one could forge lines. */
static void put_count(FILE *out, double n) {
  char digits[32];
  const int size = snprintf(digits, sizeof digits, "%.0f", n);
  for (int i = 0; i < size; ++i) {
    if (i && (size - i) % 3 == 0) fputc(',', out);
    fputc(digits[i], out);
  }
}

/* "if mask is causal: 12 of 12 fail, 0 of 2,551 others" */
static void put_predicate(FILE *out, const cJSON *p) {
  const char *kind = fa_report_string(p, "kind"), *text = fa_report_string(p, "text");
  const double failing = fa_report_number(p, "failing"), others = fa_report_number(p, "others");
  const double judged = failing + others + fa_report_number(p, "other_failures");
  if (strcmp(kind, "every") == 0 && failing == judged) {
    fputs("in every case", out);
    return;
  }
  if (strcmp(kind, "separates") != 0) {
    fputs(strcmp(kind, "every") == 0 ? "in nearly every case: " : "no simple predicate: ", out);
    put_count(out, failing);
    fputs(" of ", out);
    put_count(out, judged);
    fputs(*text ? " cases fail so with " : " cases fail so", out);
    fa_print_clean(out, text);
    return;
  }
  fputs("if ", out);
  fa_print_clean(out, text);
  fputs(": ", out);
  put_count(out, failing);
  fputs(" of ", out);
  put_count(out, fa_report_number(p, "failing_of"));
  fputs(" fail, ", out);
  put_count(out, others);
  fputs(" of ", out);
  put_count(out, fa_report_number(p, "others_of"));
  fputs(" others", out);
}

static void put_list(FILE *out, const char *label, const cJSON *list, const char *between) {
  const cJSON *one;
  int n = 0;
  cJSON_ArrayForEach(one, list) {
    fputs(n++ ? between : label, out);
    fa_print_clean(out, cJSON_IsString(one) ? one->valuestring : "");
  }
}

/* Without a report the command has the whole case in it, and stands below the failure too. */
static bool is_short(const char *repro) {
  return *repro && strlen(repro) < 160;
}

static void put_details(FILE *out, const cJSON *group) {
  const cJSON *names = cJSON_GetObjectItemCaseSensitive(group, "names");
  const cJSON *ratio = cJSON_GetObjectItemCaseSensitive(group, "worst_ratio");
  const char *repro = fa_report_string(group, "repro");
  const double more = fa_report_number(group, "count") - cJSON_GetArraySize(names);
  fprintf(out, "    %s", fa_report_string(group, "class"));
  put_list(out, "; wrong: ", cJSON_GetObjectItemCaseSensitive(group, "tensors"), " ");
  fprintf(out, "; worst ratio %.4g\n", cJSON_IsNumber(ratio) ? ratio->valuedouble : (double)INFINITY);
  const double elsewhere =
      fa_report_number(cJSON_GetObjectItemCaseSensitive(group, "predicate"), "other_failures");
  if (elsewhere > 0) fprintf(out, "    failures of other groups that satisfy it too: %.0f\n", elsewhere);
  put_list(out, "    or: ", cJSON_GetObjectItemCaseSensitive(group, "alternatives"), "\n    or: ");
  if (cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(group, "alternatives"))) fputc('\n', out);
  put_list(out, "    cases: ", names, " ");
  if (more > 0) fprintf(out, " and %.0f more", more);
  fputc('\n', out);
  if (!*repro || is_short(repro)) return;
  fputs("    repro: ", out);
  fa_print_clean(out, repro);
  fputc('\n', out);
}

static void put_group(FILE *out, const cJSON *group) {
  const cJSON *smallest = cJSON_GetObjectItemCaseSensitive(group, "smallest");
  const char *repro = fa_report_string(group, "repro");
  const double n = fa_report_number(group, "count");
  fprintf(out, "cause %.0f: ", fa_report_number(group, "id"));
  put_count(out, n);
  fprintf(out, n == 1 ? " failure, " : " failures, ");
  if (*fa_report_string(group, "hypothesis")) fputs("explained by ", out);
  fa_print_clean(out, fa_report_string(group, "title"));
  fputs("; ", out);
  put_predicate(out, cJSON_GetObjectItemCaseSensitive(group, "predicate"));
  fputs(n == 1 ? "; " : "; smallest: ", out);
  fa_print_clean(out, fa_report_string(smallest, "name"));
  if (is_short(repro)) {
    fputs(", ", out);
    fa_print_clean(out, repro);
  }
  fputc('\n', out);
}

void fa_causes_print(FILE *out, const cJSON *groups, bool verbose) {
  const cJSON *group;
  cJSON_ArrayForEach(group, groups) {
    put_group(out, group);
    if (verbose) put_details(out, group);
  }
}
