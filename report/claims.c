#include "report/claims.h"

#include "report/printed.h"

#include <string.h>

/* ---- what is left out ---- */

static void append(fa_not_claimed *row, const char *separator, const char *text) {
  const size_t used = strlen(row->text);
  snprintf(row->text + used, sizeof row->text - used, "%s%s", used ? separator : "", text);
}

static void take_words(fa_not_claimed *row, const cJSON *list) {
  const cJSON *word;
  cJSON_ArrayForEach(word, list) if (cJSON_IsString(word)) append(row, " ", word->valuestring);
}

/* "head_dim at least 16, at most 128, a multiple of 8, one of 64 96" */
static void take_limit(fa_not_claimed *row, const cJSON *limit) {
  static const struct {
    const char *key, *words;
  } parts[] = {{"min", "at least"}, {"max", "at most"}, {"multiple_of", "a multiple of"}};
  char text[512];
  size_t used = (size_t)snprintf(text, sizeof text, "%s", limit->string);
  const char *separator = " ";
  for (size_t i = 0; i < sizeof parts / sizeof *parts && used < sizeof text; ++i) {
    if (!fa_report_at(limit, parts[i].key)) continue;
    used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.0f", separator, parts[i].words,
                             fa_report_number(limit, parts[i].key));
    separator = ", ";
  }
  const cJSON *size;
  const char *before = "one of";
  cJSON_ArrayForEach(size, fa_report_at(limit, "among")) {
    if (used >= sizeof text || !cJSON_IsNumber(size)) break;
    used +=
        (size_t)snprintf(text + used, sizeof text - used, "%s%s %.0f", separator, before, size->valuedouble);
    separator = before = "";
  }
  append(row, "; ", text);
}

int fa_not_claimed_rows(const cJSON *contract, fa_not_claimed row[FA_NOT_CLAIMED_ROWS]) {
  static const char *const lists[] = {"families", "dtypes", "features", "passes", "outputs"};
  const cJSON *rest = fa_report_at(contract, "not_claimed"), *limit;
  int n = 0;
  for (size_t i = 0; i < sizeof lists / sizeof *lists; ++i) {
    row[n] = (fa_not_claimed){.what = lists[i]};
    take_words(&row[n], fa_report_at(rest, lists[i]));
    n += row[n].text[0] != 0;
  }
  row[n] = (fa_not_claimed){.what = "limits"};
  cJSON_ArrayForEach(limit, fa_report_at(fa_report_at(contract, "claims"), "limits"))
      take_limit(&row[n], limit);
  return n + (row[n].text[0] != 0);
}

/* ---- for people ---- */

bool fa_claims_matter(const cJSON *root) {
  return fa_report_at(root, "require") || fa_report_at(root, "untrusted");
}

/* Breaks lines between words. */
static void print_row(FILE *out, const fa_not_claimed *row) {
  enum { WIDTH = 100 };
  size_t column = 0;
  fprintf(out, "    %-9s", row->what);
  for (const char *word = row->text; *word;) {
    const size_t n = strcspn(word, " ");
    if (column + n > WIDTH) column = 0, fprintf(out, "\n    %9s", "");
    fprintf(out, " %.*s", (int)n, word);
    column += n + 1;
    word += n + (word[n] == ' ');
  }
  fputc('\n', out);
}

static void print_one(FILE *out, const cJSON *contract) {
  fa_not_claimed row[FA_NOT_CLAIMED_ROWS];
  const int n = fa_not_claimed_rows(contract, row);
  fprintf(out, n ? "NOT CLAIMED by %s, and so not judged:\n" : "NOT CLAIMED by %s: nothing\n",
          contract->string);
  for (int i = 0; i < n; ++i) print_row(out, &row[i]);
}

void fa_claims_print(FILE *out, const cJSON *root) {
  const cJSON *contract;
  cJSON_ArrayForEach(contract, fa_report_at(root, "contracts")) print_one(out, contract);
}
