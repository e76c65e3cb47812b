/* Arbitrary bytes as reports: what is accepted can be merged, grouped, printed and read again, and its counts add
 * up. */
#include "fuzz/inputs/fuzzer.h"

#include "report/causes/collect.h"
#include "report/causes/print.h"
#include "report/json.h"
#include "report/merge/streamed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

static int size_of(const cJSON *root, const char *key) {
  return cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(root, key));
}

/* Printing and reading again must not change the structure, and a merged report is a report. */
static void check_again(const cJSON *root, int times) {
  fa_error err = {""};
  cJSON *again = NULL;
  char *text = cJSON_PrintUnformatted(root);
  if (!text) return; /* out of memory */
  FA_FUZZ_CHECK(fa_report_parse(text, strlen(text), "again", &again, &err) == FA_OK, "%s\n%s", err.text,
                text);
  FA_FUZZ_CHECK(size_of(again, "failures") == size_of(root, "failures"), "%d times %s", times, text);
  FA_FUZZ_CHECK(size_of(again, "cases") == size_of(root, "cases"), "%d times %s", times, text);
  cJSON_Delete(again);
  cJSON_free(text);
}

/* Every failure is in one group at most, and all can be printed. */
static void check_groups(const cJSON *root) {
  fa_error err = {""};
  cJSON *groups = NULL;
  const cJSON *group;
  fa_causes *causes = fa_causes_make();
  double n = 0;
  if (causes && fa_causes_note_report(causes, root, &err) == FA_OK &&
      fa_causes_conclude(causes, cJSON_GetObjectItemCaseSensitive(root, "failures"), NULL, NULL, &groups,
                         &err) == FA_OK) {
    FILE *out = fopen("/dev/null", "w");
    cJSON_ArrayForEach(group, groups) n += cJSON_GetObjectItemCaseSensitive(group, "count")->valuedouble;
    FA_FUZZ_CHECK(n <= size_of(root, "cases"), "%g failures in groups", n);
    if (out) fa_causes_print(out, groups, true);
    if (out) fclose(out);
  }
  cJSON_Delete(groups);
  fa_causes_free(causes);
}

/* What can be read whole can be read piece by piece. */
static fa_status merge_with_itself(const char *text, size_t size, cJSON **out) {
  const fa_merge_source both[] = {{"one", text, size}, {"two", text, size}};
  fa_error err = {""};
  fa_merged *merged = NULL;
  fa_status status = fa_merge_open(both, 2, NULL, NULL, &merged, &err);
  if (status == FA_OK) status = fa_merged_tree(merged, out, &err);
  fa_merged_free(merged);
  return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fa_error err = {""};
  cJSON *root = NULL, *merged = NULL;
  char *text = fa_fuzzer_text(data, size);
  const fa_status status = fa_report_parse(text, size, "fuzz.json", &root, &err);
  if (status == FA_OK) {
    check_again(root, 1);
    check_groups(root);
    if (merge_with_itself(text, size, &merged) == FA_OK) {
      FA_FUZZ_CHECK(size_of(merged, "cases") >= size_of(root, "cases"), "%s", text);
      FA_FUZZ_CHECK(size_of(merged, "cases") <= 2 * size_of(root, "cases"), "%s", text);
      check_again(merged, 2);
    }
    cJSON_Delete(merged);
    cJSON_Delete(root);
  } else {
    FA_FUZZ_CHECK(strncmp(err.text, "fuzz.json", 9) == 0, "no file in \"%s\"", err.text);
  }
  free(text);
  return 0;
}
