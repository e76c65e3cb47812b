#include "report/merge/same.h"

#include "report/maps.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <string.h>

static const char *const kernel_keys[] = {"kernel", "backward_kernel"};

static bool same_text(const cJSON *a, const cJSON *b, const char *key) {
  return strcmp(fa_report_string(a, key), fa_report_string(b, key)) == 0;
}

bool fa_same_case(const cJSON *a, const cJSON *b) {
  return same_text(a, b, "record") && same_text(a, b, "name") && same_text(a, b, "backend");
}

/* Times and paths always differ, maps are kept of the first failures of a run alone, a field missing from a report of
 * an older version is no difference, and what the case has is in its record. */
static cJSON *comparable(const cJSON *o, const cJSON *other) {
  static const char *const keys[] = {"seconds",  "seconds_subject", "dump", "repro", "shrunk",
                                     "features", "shape",           "draw", "place"};
  cJSON *copy = cJSON_Duplicate(o, 1);
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    cJSON_DeleteItemFromObjectCaseSensitive(copy, keys[k]);
  fa_report_forget_maps(copy);
  for (int k = 0; k < 2; ++k)
    if (!*fa_report_string(o, kernel_keys[k]) || !*fa_report_string(other, kernel_keys[k]))
      cJSON_DeleteItemFromObjectCaseSensitive(copy, kernel_keys[k]);
  return copy;
}

bool fa_same_result(const cJSON *a, const cJSON *b) {
  if (a == NULL || b == NULL) return a == b;
  cJSON *x = comparable(a, b), *y = comparable(b, a);
  const bool same = x && y && cJSON_Compare(x, y, 1);
  cJSON_Delete(x);
  cJSON_Delete(y);
  return same;
}

/* Results of two kernels, as with and without FA_HOPPER=off, do not contradict each other. */
bool fa_of_other_kernels(const cJSON *a, const cJSON *b) {
  for (int k = 0; k < 2; ++k)
    if (*fa_report_string(a, kernel_keys[k]) && *fa_report_string(b, kernel_keys[k]) &&
        !same_text(a, b, kernel_keys[k]))
      return true;
  return false;
}
