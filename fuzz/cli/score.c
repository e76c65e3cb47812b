#include "fuzz/cli/score.h"

#include "cases/base/atomic_file.h"
#include "cases/base/json.h"
#include "report/printed.h"
#include "report/score/document.h"

#include <stdlib.h>
#include <string.h>

bool fa_score_is_bench(const char *path) {
  char start[64] = "";
  FILE *in = fopen(path, "r");
  if (!in) return false;
  start[fread(start, 1, sizeof start - 1, in)] = 0;
  fclose(in);
  const char *key = strchr(start, '"');
  return key && strncmp(key, "\"fa_bench\"", 10) == 0;
}

/* *out is NULL if none of the words is such a file. */
static fa_status read_bench(const fa_cli *cli, cJSON **out, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  for (int i = 0; i < cli->words.n; ++i) {
    const char *path = cli->words.v[i];
    if (!fa_score_is_bench(path)) continue;
    fa_status status = fa_file_read(path, &text, &n, err);
    if (status == FA_OK) status = fa_json_parse(text, n, path, out, err);
    free(text);
    return status;
  }
  return FA_OK;
}

static fa_status add_case(void *ctx, const fa_merged_case *c, fa_error *err) {
  return fa_score_cases_add(ctx, c->entry, err);
}

static fa_status write_text(const char *path, const cJSON *score, fa_error *err) {
  char *text = score ? cJSON_Print(score) : NULL, *line = NULL;
  if (!text || asprintf(&line, "%s\n", text) < 0) line = NULL;
  cJSON_free(text);
  if (!line) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_status status = FA_OK;
  if (strcmp(path, "-") == 0)
    fputs(line, stdout);
  else
    status = fa_file_write_atomic(path, line, strlen(line), err);
  free(line);
  return status;
}

fa_status fa_score_write(const fa_cli *cli, fa_merged *merged, fa_error *err) {
  const cJSON *head = fa_merged_head(merged);
  fa_score_cases cases;
  cJSON *bench = NULL, *score = NULL;
  fa_score_cases_init(&cases, fa_report_at(head, "contracts"));
  fa_status status = fa_merged_each(merged, add_case, &cases, err);
  if (status == FA_OK) status = read_bench(cli, &bench, err);
  if (status == FA_OK) {
    score = fa_score_document(&cases, head, bench);
    status = write_text(cli->score, score, err);
  }
  if (status == FA_OK && strcmp(cli->score, "-") != 0) fa_score_print(stdout, score);
  cJSON_Delete(score);
  cJSON_Delete(bench);
  fa_score_cases_free(&cases);
  return status;
}
