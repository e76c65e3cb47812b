#include "tests/report/merged_trees.h"

#include "report/journal_line.h"
#include "report/merge/streamed.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };

static char *text_of(const cJSON *report) {
  cJSON *copy = cJSON_Duplicate(report, 1);
  fa_report_keep_digits(copy);
  char *text = cJSON_PrintUnformatted(copy);
  cJSON_Delete(copy);
  REQUIRE(text);
  return text;
}

fa_status merge_trees(cJSON *const *reports, const char *const *paths, int n, cJSON **out, fa_error *err) {
  fa_merge_source source[MOST] = {{0}};
  char *text[MOST];
  fa_merged *merged = NULL;
  REQUIRE(n <= MOST);
  for (int i = 0; i < n; ++i) {
    text[i] = text_of(reports[i]);
    source[i] = (fa_merge_source){paths[i], text[i], strlen(text[i])};
  }
  fa_status status = fa_merge_open(source, n, NULL, NULL, &merged, err);
  if (status == FA_OK) status = fa_merged_tree(merged, out, err);
  fa_merged_free(merged);
  for (int i = 0; i < n; ++i) cJSON_free(text[i]);
  return status;
}
