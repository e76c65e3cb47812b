#include "fuzz/campaign/resume.h"

#include "report/printed.h"

#include <cjson/cJSON.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *fa_resume_header(const cJSON *run, const char *command, const char *started) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddNumberToObject(o, "fa_journal", FA_JOURNAL_VERSION);
  cJSON_AddStringToObject(o, "started", started);
  cJSON_AddStringToObject(o, "command", command);
  cJSON_AddItemToObject(o, "run", cJSON_Duplicate(run, 1));
  char *text = cJSON_PrintUnformatted(o);
  cJSON_Delete(o);
  return text;
}

/* theirs or mine is NULL if that run does not have the key. */
static fa_status differs(const char *key, const cJSON *theirs, const cJSON *mine, const char *path,
                         fa_error *err) {
  char *a = theirs ? cJSON_PrintUnformatted(theirs) : NULL, *b = mine ? cJSON_PrintUnformatted(mine) : NULL;
  fa_fail(err, FA_ERR_INPUT, "%s: of another run: its %s is %s, now %s; --resume needs the same arguments",
          path, key, a ? a : "missing", b ? b : "missing");
  cJSON_free(a);
  cJSON_free(b);
  return FA_ERR_INPUT;
}

/* A version or commit of a file that may come from elsewhere: "?" unless it can be printed as it is. */
static const char *word_of(const cJSON *run, const char *key) {
  const char *text = fa_report_string(run, key);
  for (const char *c = text; *c; ++c)
    if (*c <= ' ' || *c > '~' || c - text > 60) return "?";
  return text;
}

/* Another program may draw, order and judge cases differently; half a run of each is a run of neither. */
static fa_status check_program(const cJSON *before, const cJSON *now, const char *path, fa_error *err) {
  const char *version = word_of(before, "version"), *git = word_of(before, "git");
  const char *my_version = word_of(now, "version"), *my_git = word_of(now, "git");
  if (strcmp(version, my_version) == 0 && strcmp(git, my_git) == 0) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "%s: a run of fa-verify %s (%s), and this is %s (%s); only the program that began a run can "
                 "--resume it",
                 path, version, git, my_version, my_git);
}

fa_status fa_resume_compare(const cJSON *before, const cJSON *now, const char *path, fa_error *err) {
  const cJSON *mine, *theirs;
  if (!cJSON_IsObject(before)) return fa_fail(err, FA_ERR_INPUT, "%s: does not say of which run it is", path);
  fa_status status = check_program(before, now, path, err);
  if (status != FA_OK) return status;
  cJSON_ArrayForEach(mine, now) {
    theirs = cJSON_GetObjectItemCaseSensitive(before, mine->string);
    if (!theirs || !cJSON_Compare(mine, theirs, 1)) return differs(mine->string, theirs, mine, path, err);
  }
  /* Optional keys, such as laws, may be missing on either side. */
  cJSON_ArrayForEach(theirs, before) {
    if (!cJSON_GetObjectItemCaseSensitive(now, theirs->string))
      return differs(theirs->string, theirs, NULL, path, err);
  }
  return FA_OK;
}

static fa_status read_header(fa_resume *r, const char *text, const char *path, const cJSON *run,
                             fa_error *err) {
  cJSON *o = cJSON_ParseWithOpts(text, NULL, 1);
  const cJSON *version = cJSON_GetObjectItemCaseSensitive(o, "fa_journal");
  const cJSON *started = cJSON_GetObjectItemCaseSensitive(o, "started");
  const cJSON *command = cJSON_GetObjectItemCaseSensitive(o, "command");
  fa_status status;
  if (!cJSON_IsNumber(version) || version->valuedouble != FA_JOURNAL_VERSION || !cJSON_IsString(started) ||
      !cJSON_IsString(command)) {
    status = fa_fail(err, FA_ERR_INPUT, "%s:1: no journal of fa-verify", path);
  } else {
    status = fa_resume_compare(cJSON_GetObjectItemCaseSensitive(o, "run"), run, path, err);
    snprintf(r->started, sizeof r->started, "%s", started->valuestring);
    r->command = strdup(command->valuestring);
    if (status == FA_OK && !r->command) status = fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  }
  cJSON_Delete(o);
  return status;
}

static int by_item(const void *a, const void *b) {
  const fa_resume_line *x = a, *y = b;
  return (x->item > y->item) - (x->item < y->item);
}

static fa_status read_result(fa_resume *r, const char *text, const char *path, int64_t number,
                             fa_error *err) {
  fa_report_line line;
  fa_status status = fa_report_line_parse(text, &line, err);
  if (status != FA_OK) {
    fa_error_prefix(err, "%s:%lld", path, (long long)number);
    return status;
  }
  if (r->spent < line.elapsed) r->spent = line.elapsed;
  if (r->end <= line.item) r->end = line.item + 1;
  r->line[r->n++] = (fa_resume_line){line.item, text};
  fa_report_line_free(&line);
  return FA_OK;
}

fa_status fa_resume_read(fa_resume *r, char *text, const char *path, const cJSON *run, fa_error *err) {
  *r = (fa_resume){.text = text};
  int64_t n_lines = 0, number = 0;
  fa_status status = FA_OK;
  for (const char *c = text; *c; ++c) n_lines += *c == '\n';
  if (n_lines == 0) return FA_OK;
  r->line = calloc((size_t)n_lines, sizeof *r->line);
  if (!r->line) status = fa_fail(err, FA_ERR_MEMORY, "%s: out of memory", path);
  for (char *at = text, *end; status == FA_OK && (end = strchr(at, '\n')); at = end + 1) {
    *end = 0;
    status = ++number == 1 ? read_header(r, at, path, run, err) : read_result(r, at, path, number, err);
  }
  if (status == FA_OK && r->n) qsort(r->line, (size_t)r->n, sizeof *r->line, by_item);
  for (int64_t i = 1; status == FA_OK && i < r->n; ++i)
    if (r->line[i].item == r->line[i - 1].item)
      status =
          fa_fail(err, FA_ERR_INPUT, "%s: item %lld stands there twice", path, (long long)r->line[i].item);
  if (status != FA_OK) fa_resume_free(r);
  return status;
}

bool fa_resume_has(const fa_resume *r, int64_t item) {
  fa_resume_line key = {.item = item};
  return item < r->end && bsearch(&key, r->line, (size_t)r->n, sizeof *r->line, by_item);
}

void fa_resume_free(fa_resume *r) {
  free(r->text);
  free(r->line);
  free(r->command);
  *r = (fa_resume){0};
}
