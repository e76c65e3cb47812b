#include "fuzz/one/failure_word.h"
#include "cases/codec/json.h"

#include "report/json.h"
#include "report/unfinished.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

fa_status fa_failure_word_read(const char *word, fa_failure_word *out, fa_error *err) {
  *out = (fa_failure_word){.k = -1};
  if (strlen(word) >= sizeof out->path) return fa_fail(err, FA_ERR_INPUT, "%s: the name is too long", word);
  memcpy(out->path, word, strlen(word) + 1);
  char *colon = strrchr(out->path, ':'), *end = NULL;
  if (!colon || access(word, F_OK) == 0) return FA_OK;
  errno = 0;
  const long long n = strtoll(colon + 1, &end, 10);
  out->shrunk = end && strcmp(end, ".shrunk") == 0;
  if (errno || end == colon + 1 || n < 0 || (*end && !out->shrunk))
    return fa_fail(err, FA_ERR_INPUT,
                   "%s: a failure's number >= 0 is needed after the colon; .shrunk may follow", word);
  *colon = 0;
  out->k = n;
  return FA_OK;
}

static const cJSON *get(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

fa_status fa_failure_read(const cJSON *failure, bool shrunk, fa_case *c, uint64_t *schedule_seed,
                          fa_error *err) {
  const cJSON *from = shrunk ? get(failure, "shrunk") : failure;
  if (shrunk && !cJSON_IsObject(get(from, "case")))
    return fa_fail(err, FA_ERR_INPUT, "$.shrunk: missing; this failure was not shrunk");
  const cJSON *seed = get(from, "schedule_seed");
  char *end = NULL;
  errno = 0;
  *schedule_seed = cJSON_IsString(seed) ? strtoull(seed->valuestring, &end, 10) : 0;
  if (seed && (!end || *end || end == seed->valuestring || errno || seed->valuestring[0] == '-'))
    return fa_fail(err, FA_ERR_INPUT, "$.schedule_seed: must be a string of digits, below 2^64");
  return fa_case_from_json(get(from, "case"), shrunk ? "$.shrunk.case" : "$.case", c, err);
}

const char *fa_failure_backend(const cJSON *failure) {
  const cJSON *name = get(failure, "backend");
  return cJSON_IsString(name) ? name->valuestring : "";
}

/* While a run is under way, its failures are printed with the numbers that they will have in its report. Only a
 * report has what they were shrunk to. */
static fa_status load_failures(const fa_failure_word *word, cJSON **root, fa_error *err) {
  if (!word->shrunk && fa_report_is_unfinished(word->path))
    return fa_report_load_unfinished(word->path, root, err);
  return fa_report_load(word->path, root, err);
}

fa_status fa_failures_visit(const char *text, fa_failure_visit *visit, void *ctx, fa_error *err) {
  fa_failure_word word;
  cJSON *root = NULL;
  const cJSON *failure;
  int64_t i = 0;
  fa_status status = fa_failure_word_read(text, &word, err);
  if (status == FA_OK) status = load_failures(&word, &root, err);
  if (status != FA_OK) return status;
  const cJSON *failures = get(root, "failures");
  const int64_t n = cJSON_GetArraySize(failures);
  if (word.k >= n)
    status = fa_fail(err, FA_ERR_INPUT, "%s: there is no failure %lld; the report has %lld", word.path,
                     (long long)word.k, (long long)n);
  cJSON_ArrayForEach(failure, failures) {
    if (status != FA_OK) break;
    if (word.k < 0 || word.k == i) status = visit(ctx, failure, word.shrunk, err);
    if (status != FA_OK) fa_error_prefix(err, "%s: $.failures[%lld]", word.path, (long long)i);
    ++i;
  }
  cJSON_Delete(root);
  return status;
}
