#include "report/unfinished.h"

#include "cases/base/atomic_file.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void fa_report_journal_of(const char *path, char *journal, size_t size) {
  snprintf(journal, size, "%s.journal", path);
}

static bool is_later(const struct timespec *a, const struct timespec *b) {
  return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

bool fa_report_is_unfinished(const char *path) {
  char journal[4200];
  struct stat written, report;
  fa_report_journal_of(path, journal, sizeof journal);
  if (stat(journal, &written) != 0) return false;
  return stat(path, &report) != 0 || is_later(&written.st_mtim, &report.st_mtim);
}

/* Results stand in the order in which they arrived. */
typedef struct result {
  int64_t item;
  cJSON *line; /* owned */
} result;

static int by_item(const void *a, const void *b) {
  const result *x = a, *y = b;
  return (x->item > y->item) - (x->item < y->item);
}

/* All complete lines but the first, which says of which run they are. */
static int64_t read_lines(char *text, result *all) {
  int64_t n = 0;
  char *at = strchr(text, '\n'), *end;
  for (at = at ? at + 1 : NULL; at && (end = strchr(at, '\n')); at = end + 1) {
    *end = 0;
    cJSON *line = cJSON_ParseWithOpts(at, NULL, 1);
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(line, "item");
    if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < 0x1p53)
      all[n++] = (result){(int64_t)item->valuedouble, line};
    else
      cJSON_Delete(line);
  }
  qsort(all, (size_t)n, sizeof *all, by_item);
  return n;
}

static cJSON *empty_report(void) {
  static const char *const keys[] = {"total", "passed", "failed", "skipped", "error"};
  cJSON *root = cJSON_CreateObject();
  cJSON_AddNumberToObject(root, "fa_report", FA_REPORT_VERSION);
  cJSON *summary = cJSON_AddObjectToObject(root, "summary");
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k) cJSON_AddNumberToObject(summary, keys[k], 0);
  cJSON_AddArrayToObject(root, "cases");
  return root;
}

/* NULL: out of memory. */
static cJSON *make_report(char *text) {
  size_t n_lines = 1;
  for (const char *c = text; *c; ++c) n_lines += *c == '\n';
  result *all = calloc(n_lines, sizeof *all);
  cJSON *root = all ? empty_report() : NULL;
  cJSON *failures = cJSON_AddArrayToObject(root, "failures");
  const int64_t n = failures ? read_lines(text, all) : 0;
  for (int64_t i = 0; i < n; ++i) {
    cJSON *failure = cJSON_DetachItemFromObjectCaseSensitive(all[i].line, "failure");
    if (all[i].item != i || !cJSON_AddItemToArray(failures, failure)) cJSON_Delete(failure);
    cJSON_Delete(all[i].line);
  }
  free(all);
  return failures ? root : NULL;
}

fa_status fa_report_load_unfinished(const char *path, cJSON **root, fa_error *err) {
  char journal[4200], *text = NULL;
  size_t n = 0;
  fa_report_journal_of(path, journal, sizeof journal);
  fa_status status = fa_file_read(journal, &text, &n, err);
  if (status != FA_OK) return status == FA_ERR_IO ? FA_ERR_INPUT : status; /* the user named the report */
  cJSON *report = make_report(text);
  free(text);
  if (report == NULL) return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", journal);
  status = fa_report_check(journal, report, err);
  if (status == FA_OK)
    *root = report;
  else
    cJSON_Delete(report);
  return status;
}
