/* repro: failures of a report again, on the backend and with the schedule that they were reported with. */
#include "fuzz/session.h"

#include <cjson/cJSON.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* "REPORT.json:K" -> path and K; K = -1: all. A path that exists as written is a path. */
static fa_status split_word(const char *word, char *path, size_t size, int64_t *k, fa_error *err) {
  *k = -1;
  if (strlen(word) >= size) return fa_fail(err, FA_ERR_INPUT, "%s: the name is too long", word);
  snprintf(path, size, "%s", word);
  char *colon = strrchr(path, ':'), *end = NULL;
  if (!colon || access(word, F_OK) == 0) return FA_OK;
  errno = 0;
  long long n = strtoll(colon + 1, &end, 10);
  if (errno || *end || end == colon + 1 || n < 0)
    return fa_fail(err, FA_ERR_INPUT, "%s: a failure's number >= 0 is needed after the colon", word);
  *colon = 0;
  *k = n;
  return FA_OK;
}

static fa_status find_choice(fa_session *s, const cJSON *failure, int *choice, fa_error *err) {
  const cJSON *name = cJSON_GetObjectItemCaseSensitive(failure, "backend");
  const char *spec = cJSON_IsString(name) ? name->valuestring : "";
  for (int i = 0; i < s->n_choices; ++i) {
    *choice = i;
    if (strcmp(s->choice[i].spec, spec) == 0) return FA_OK;
  }
  if (s->n_choices == FA_MAX_BACKENDS) return fa_fail(err, FA_ERR_INPUT, "too many different backends");
  *choice = s->n_choices++;
  return fa_choose_backend(s->cli->backends, spec, &s->choice[*choice], err);
}

/* --backend, when given, replaces the reported one. */
static fa_status add_failure(fa_session *s, const cJSON *failure, fa_case_list *list, fa_error *err) {
  const cJSON *seed = cJSON_GetObjectItemCaseSensitive(failure, "schedule_seed");
  uint64_t schedule_seed = cJSON_IsString(seed) ? strtoull(seed->valuestring, NULL, 10) : 0;
  if (s->cli->schedule_seed) schedule_seed = s->cli->schedule_seed;
  int first = 0, last = s->cli->backend.n - 1;
  fa_case c;
  fa_status status = FA_OK;
  if (s->cli->backend.n == 0) {
    status = find_choice(s, failure, &first, err);
    last = first;
  }
  if (status == FA_OK)
    status = fa_case_from_json(cJSON_GetObjectItemCaseSensitive(failure, "case"), "$.case", &c, err);
  if (status == FA_OK) status = fa_case_list_push(list, &c);
  for (int b = first; status == FA_OK && b <= last; ++b)
    status = fa_session_add_item(s, list->n - 1, b, schedule_seed);
  return status;
}

static fa_status add_report(fa_session *s, const char *word, fa_case_list *list, fa_error *err) {
  char path[4096];
  int64_t k, i = 0;
  cJSON *root = NULL;
  const cJSON *failure;
  fa_status status = split_word(word, path, sizeof path, &k, err);
  if (status == FA_OK) status = fa_report_load(path, &root, err);
  if (status != FA_OK) return status;
  const cJSON *failures = cJSON_GetObjectItemCaseSensitive(root, "failures");
  int64_t n = cJSON_GetArraySize(failures);
  if (k >= n)
    status = fa_fail(err, FA_ERR_INPUT, "%s: there is no failure %lld; the report has %lld", path,
                     (long long)k, (long long)n);
  cJSON_ArrayForEach(failure, failures) {
    if (status != FA_OK) break;
    if (k < 0 || k == i) status = add_failure(s, failure, list, err);
    if (status != FA_OK) fa_error_prefix(err, "%s: $.failures[%lld]", path, (long long)i);
    ++i;
  }
  cJSON_Delete(root);
  return status;
}

int fa_command_repro(const fa_cli *cli) {
  if (cli->words.n == 0) return fa_cli_usage_error("repro: REPORT.json or REPORT.json:K is needed");
  fa_error err = {""};
  fa_case_list list = {0};
  fa_session *s = malloc(sizeof *s);
  if (!s) return fa_cli_fail(FA_ERR_MEMORY, &(fa_error){"out of memory"});
  int code = fa_session_open(s, cli);
  if (code == 0) {
    fa_status status = FA_OK;
    for (int i = 0; status == FA_OK && i < cli->words.n; ++i)
      status = add_report(s, cli->words.v[i], &list, &err);
    s->source = (fa_source){.list = &list};
    code = status == FA_OK ? fa_session_run(s) : fa_cli_fail(status, &err);
  }
  fa_session_free(s);
  free(s);
  fa_case_list_free(&list);
  return code;
}
