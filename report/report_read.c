/* Reads reports back, and joins several into one. A report that came from elsewhere is checked before use. */
#include "report/report_json.h"
#include "report/report_printed.h"

#include "cases/atomic_file.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

static const char *const count_keys[] = {"total", "passed", "failed", "skipped", "error"};
enum { N_COUNTS = sizeof count_keys / sizeof *count_keys };

/* Objects in an array, each with a known "state". */
static fa_status check_entries(const char *path, const char *key, const cJSON *list, fa_error *err) {
  if (!cJSON_IsArray(list)) return fa_fail(err, FA_ERR_INPUT, "%s: $.%s: missing or no array", path, key);
  int i = 0;
  const cJSON *entry;
  cJSON_ArrayForEach(entry, list) {
    const cJSON *state = cJSON_GetObjectItemCaseSensitive(entry, "state");
    fa_state ignored;
    if (!cJSON_IsObject(entry)) return fa_fail(err, FA_ERR_INPUT, "%s: $.%s[%d]: no object", path, key, i);
    if (!cJSON_IsString(state) || !fa_state_from_name(state->valuestring, &ignored))
      return fa_fail(err, FA_ERR_INPUT,
                     "%s: $.%s[%d].state: missing or unknown; a state such as \"PASS\" is needed", path, key,
                     i);
    if (strcmp(key, "failures") == 0 && !cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(entry, "case")))
      return fa_fail(err, FA_ERR_INPUT, "%s: $.failures[%d].case: missing or no object", path, i);
    ++i;
  }
  return FA_OK;
}

static fa_status check_report(const char *path, const cJSON *root, fa_error *err) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "fa_report");
  if (!cJSON_IsObject(root) || !version)
    return fa_fail(err, FA_ERR_INPUT, "%s: $.fa_report: missing; this is no fa-verify report", path);
  if (!cJSON_IsNumber(version) || version->valuedouble != 1)
    return fa_fail(err, FA_ERR_INPUT, "%s: $.fa_report: unknown version; 1 is allowed", path);
  const cJSON *summary = cJSON_GetObjectItemCaseSensitive(root, "summary");
  for (int i = 0; i < N_COUNTS; ++i) {
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(summary, count_keys[i]);
    if (!cJSON_IsNumber(n) || !(n->valuedouble >= 0 && n->valuedouble <= 0x1p53))
      return fa_fail(err, FA_ERR_INPUT, "%s: $.summary.%s: a count of 0 .. 2^53 is needed", path,
                     count_keys[i]);
  }
  fa_status status = check_entries(path, "failures", cJSON_GetObjectItemCaseSensitive(root, "failures"), err);
  if (status != FA_OK) return status;
  return check_entries(path, "cases", cJSON_GetObjectItemCaseSensitive(root, "cases"), err);
}

fa_status fa_report_parse(const char *text, size_t n_bytes, const char *path, cJSON **root, fa_error *err) {
  const char *end = NULL;
  cJSON *json = cJSON_ParseWithLengthOpts(text, n_bytes + 1, &end, 1);
  fa_status status;
  if (!json) {
    int line = 1;
    for (const char *c = text; end && c < end && *c; ++c) line += *c == '\n';
    status = fa_fail(err, FA_ERR_INPUT, "%s:%d: no valid JSON", path, line);
  } else {
    status = check_report(path, json, err);
  }
  if (status != FA_OK)
    cJSON_Delete(json);
  else
    *root = json;
  return status;
}

fa_status fa_report_load(const char *path, cJSON **root, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  fa_status status = fa_file_read(path, &text, &n, err);
  if (status == FA_ERR_IO) return FA_ERR_INPUT; /* the user named it */
  if (status != FA_OK) return status;
  status = fa_report_parse(text, n, path, root, err);
  free(text);
  return status;
}

static void append_copies(cJSON *to, const cJSON *from) {
  const cJSON *entry;
  cJSON_ArrayForEach(entry, from) cJSON_AddItemToArray(to, cJSON_Duplicate(entry, 1));
}

fa_status fa_report_merge(cJSON *const *reports, int n, cJSON **out, fa_error *err) {
  FA_ASSERT(n >= 1);
  cJSON *merged = cJSON_Duplicate(reports[0], 1);
  if (!merged) return fa_fail(err, FA_ERR_MEMORY, "merge: out of memory");
  cJSON *failures = cJSON_GetObjectItemCaseSensitive(merged, "failures");
  cJSON *cases = cJSON_GetObjectItemCaseSensitive(merged, "cases");
  cJSON *summary = cJSON_GetObjectItemCaseSensitive(merged, "summary");
  double seconds = fa_report_number(merged, "seconds");
  for (int i = 1; i < n; ++i) {
    append_copies(failures, cJSON_GetObjectItemCaseSensitive(reports[i], "failures"));
    append_copies(cases, cJSON_GetObjectItemCaseSensitive(reports[i], "cases"));
    seconds += fa_report_number(reports[i], "seconds");
    const cJSON *other = cJSON_GetObjectItemCaseSensitive(reports[i], "summary");
    for (int k = 0; k < N_COUNTS; ++k)
      cJSON_SetNumberValue(cJSON_GetObjectItemCaseSensitive(summary, count_keys[k]),
                           fa_report_number(summary, count_keys[k]) + fa_report_number(other, count_keys[k]));
    if (fa_report_number(summary, "waived") + fa_report_number(other, "waived") > 0) {
      double waived = fa_report_number(summary, "waived") + fa_report_number(other, "waived");
      cJSON_DeleteItemFromObjectCaseSensitive(summary, "waived");
      cJSON_AddNumberToObject(summary, "waived", waived);
    }
    const cJSON *reason;
    cJSON *left_out = cJSON_GetObjectItemCaseSensitive(summary, "backward_left_out");
    if (left_out)
      cJSON_SetNumberValue(left_out, left_out->valuedouble + fa_report_number(other, "backward_left_out"));
    cJSON *reasons = cJSON_GetObjectItemCaseSensitive(summary, "skip_reasons");
    cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(other, "skip_reasons")) {
      double sum = fa_report_number(reasons, reason->string) + reason->valuedouble;
      cJSON_DeleteItemFromObjectCaseSensitive(reasons, reason->string);
      cJSON_AddNumberToObject(reasons, reason->string, sum);
    }
  }
  if (n > 1) { /* it is no longer the report of one run */
    cJSON_DeleteItemFromObjectCaseSensitive(merged, "run");
    cJSON_DeleteItemFromObjectCaseSensitive(merged, "finished");
  }
  cJSON_DeleteItemFromObjectCaseSensitive(merged,
                                          "seconds"); /* it may be missing: to replace it would leak */
  cJSON_AddNumberToObject(merged, "seconds", seconds);
  fa_status status = check_report("merge", merged, err);
  if (status == FA_OK)
    *out = merged;
  else
    cJSON_Delete(merged);
  return status;
}
