/* Writes the merged report: its head from a tree, its cases and failures from where they stand. */
#include "report/merge/parts.h"
#include "report/merge/pretty.h"

#include "cases/base/atomic_file.h"
#include "report/journal_line.h"

#include <cjson/cJSON.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER = 1 << 20, AHEAD_OF_DISK = 1 << 26 };

typedef struct writing {
  fa_merged *m;
  fa_new_file to;
  fa_text text;   /* of the value being written */
  int64_t behind; /* bytes since the disk was last asked to begin */
  fa_error *err;
} writing;

static fa_status out_of_memory(writing *w) {
  return fa_fail(w->err, FA_ERR_MEMORY, "%s: out of memory", w->to.path);
}

/* By way of cJSON, for whatever is not plain: as the only item of a list in a list, which is as deep. */
static fa_status put_tree(writing *w, fa_spot at) {
  cJSON *value = NULL;
  const fa_status status = fa_merge_read(w->m, &w->m->here, at, &value, w->err);
  if (status != FA_OK) return status;
  if (w->m->zero_times) fa_report_zero_times(value);
  fa_report_keep_digits(value);
  cJSON *inner = cJSON_CreateArray(), *outer = cJSON_CreateArray();
  cJSON_AddItemToArray(inner, value);
  cJSON_AddItemToArray(outer, inner);
  char *text = cJSON_Print(outer);
  if (text) fwrite(text + 2, 1, strlen(text) - 4, w->to.file);
  cJSON_free(text);
  cJSON_Delete(outer);
  return text ? FA_OK : out_of_memory(w);
}

/* Lets the disk write what there is while more is made: else all of it is waited for at the end. */
static void begin_to_store(writing *w, size_t n) {
  w->behind += (int64_t)n;
  if (w->behind < AHEAD_OF_DISK) return;
  w->behind = 0;
  sync_file_range(fileno(w->to.file), 0, 0, SYNC_FILE_RANGE_WRITE); /* a hint: it may fail */
}

/* An item of "cases" or "failures". */
static fa_status put_item(writing *w, fa_spot at, bool first) {
  const char *json;
  const fa_status status = fa_view_get(&w->m->here, &w->m->input[at.report], at.offset, at.n, &json, w->err);
  if (status != FA_OK) return status;
  if (!first) fputs(", ", w->to.file);
  w->text.n = 0;
  if (!fa_pretty(&w->text, json, at.n, 2, w->m->zero_times))
    return w->text.failed ? out_of_memory(w) : put_tree(w, at);
  fwrite(w->text.v, 1, w->text.n, w->to.file);
  begin_to_store(w, w->text.n);
  return ferror(w->to.file) ? FA_ERR_IO : FA_OK; /* closing says why */
}

static fa_status put_cases(writing *w) {
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < w->m->n_kept; ++i)
    status = put_item(w, w->m->kept[i].at, i == 0);
  return status;
}

static fa_status put_failures(writing *w) {
  fa_status status = FA_OK;
  for (int64_t i = 0; status == FA_OK && i < w->m->failures.n; ++i)
    status = put_item(w, w->m->failures.v[i], i == 0);
  return status;
}

/* A member of the head, laid out as within the whole report: printed as the only one of an object, without the
 * braces. */
static fa_status put_member(writing *w, cJSON *item) {
  cJSON *alone = cJSON_CreateObject();
  cJSON_AddItemReferenceToObject(alone, item->string, item);
  char *text = cJSON_Print(alone);
  if (text) fwrite(text + 2, 1, strlen(text) - 4, w->to.file);
  cJSON_free(text);
  cJSON_Delete(alone);
  return text ? FA_OK : out_of_memory(w);
}

static fa_status put_report(writing *w) {
  static const struct {
    const char *key;
    fa_status (*put)(writing *);
  } lists[] = {{"failures", put_failures}, {"cases", put_cases}};
  bool done[2] = {false, false};
  fa_status status = FA_OK;
  fputs("{\n", w->to.file);
  for (cJSON *item = w->m->head->child; status == FA_OK && item; item = item->next) {
    int k = 0;
    while (k < 2 && (done[k] || strcmp(item->string, lists[k].key) != 0)) ++k;
    if (k < 2) {
      fprintf(w->to.file, "\t\"%s\":\t[", item->string);
      status = lists[k].put(w);
      fputc(']', w->to.file);
      done[k] = true;
    } else {
      status = put_member(w, item);
    }
    fputs(item->next ? ",\n" : "\n", w->to.file);
  }
  fputc('}', w->to.file);
  return status;
}

fa_status fa_merged_write(fa_merged *m, const char *path, fa_error *err) {
  writing w = {.m = m, .err = err};
  fa_report_keep_digits(m->head);
  fa_status status = fa_new_file_open(&w.to, path, err);
  if (status != FA_OK) return status;
  setvbuf(w.to.file, NULL, _IOFBF, BUFFER);
  status = put_report(&w);
  fa_text_free(&w.text);
  if (status == FA_ERR_IO && ferror(w.to.file)) status = FA_OK;
  return fa_new_file_close(&w.to, status, err);
}
