/* Reads reports back. They may come from elsewhere, so they are checked before use. */
#include "report/json.h"

#include "cases/base/atomic_file.h"
#include "cases/codec/count.h"
#include "cases/tensors/table.h"
#include "report/kernels.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

static const char *const count_keys[] = {"total", "passed", "failed", "skipped", "error"};
enum { N_COUNTS = sizeof count_keys / sizeof *count_keys };

/* Checks an array of objects, each with a known "state". */
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

fa_status fa_report_check(const char *path, const cJSON *root, fa_error *err) {
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(root, "fa_report");
  if (!cJSON_IsObject(root) || !version)
    return fa_fail(err, FA_ERR_INPUT, "%s: $.fa_report: missing; this is no fa-verify report", path);
  if (!cJSON_IsNumber(version) || version->valuedouble != FA_REPORT_VERSION)
    return fa_fail(err, FA_ERR_INPUT, "%s: $.fa_report: unknown version; %d is allowed", path,
                   FA_REPORT_VERSION);
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
    status = fa_report_check(path, json, err);
  }
  if (status != FA_OK)
    cJSON_Delete(json);
  else
    *root = json;
  return status;
}

void fa_report_read_summary(const cJSON *root, fa_summary *out) {
  const cJSON *counts = cJSON_GetObjectItemCaseSensitive(root, "summary"), *reason;
  const struct {
    const char *key;
    int64_t *n;
  } fields[] = {{"total", &out->total},
                {"passed", &out->passed},
                {"failed", &out->failed},
                {"skipped", &out->skipped},
                {"error", &out->error},
                {"waived", &out->waived},
                {"known", &out->known},
                {"malformed", &out->malformed},
                {"backward_left_out", &out->backward_left_out},
                {"sampled", &out->sampled}};
  memset(out, 0, sizeof *out);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; ++i)
    *fields[i].n = fa_count_at(counts, fields[i].key);
  fa_judged_counts_read(counts, &out->judged);
  cJSON_ArrayForEach(reason, cJSON_GetObjectItemCaseSensitive(counts, "skip_reasons")) {
    if (out->n_reasons == FA_SKIP_REASONS || !cJSON_IsNumber(reason) || !reason->string) continue;
    snprintf(out->reason[out->n_reasons].text, sizeof out->reason[0].text, "%s", reason->string);
    out->reason[out->n_reasons++].n = fa_count_of(reason);
  }
  fa_kernel_counts_add_cases(&out->kernels, cJSON_GetObjectItemCaseSensitive(root, "cases"));
}

void fa_report_read_judged(const cJSON *entry, fa_result *brief) {
  const cJSON *ratio;
  snprintf(brief->features, sizeof brief->features, "%s", fa_report_string(entry, "features"));
  snprintf(brief->shape, sizeof brief->shape, "%s", fa_report_string(entry, "shape"));
  brief->passes = (unsigned)fa_count_at(entry, "passes") & (FA_PASS_FORWARD | FA_PASS_BACKWARD);
  cJSON_ArrayForEach(ratio, cJSON_GetObjectItemCaseSensitive(entry, "ratios")) {
    for (int id = 0; ratio->string && id < FA_T_COUNT; ++id) {
      const char *name = fa_tensor_id_name((fa_tensor_id)id);
      const size_t n = strlen(name);
      const bool same = strncmp(ratio->string, name, n) == 0;
      if (same && (ratio->string[n] == 0 || strcmp(ratio->string + n, "_end_to_end") == 0))
        brief->outputs |= FA_TENSOR_BIT(id);
    }
  }
}

fa_status fa_report_load(const char *path, cJSON **root, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  fa_status status = fa_file_read(path, &text, &n, err);
  if (status == FA_ERR_IO) return FA_ERR_INPUT; /* the user named the file */
  if (status != FA_OK) return status;
  status = fa_report_parse(text, n, path, root, err);
  free(text);
  return status;
}
