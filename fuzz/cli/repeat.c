#include "fuzz/cli/repeat.h"

#include "cases/codec/count.h"
#include "fuzz/one/failure_word.h"
#include "report/json.h"
#include "report/printed.h"
#include "report/unfinished.h"
#include "report/untrusted/words.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the report says ---- */

/* The words of a list in the report, and one more unless it is NULL; they live as long as the report. */
static bool take_words(const cJSON *list, const char *one_more, const char ***owned, fa_words *to) {
  const cJSON *x;
  *owned = calloc((size_t)cJSON_GetArraySize(list) + 2, sizeof **owned);
  if (!*owned) return false;
  *to = (fa_words){.v = *owned};
  cJSON_ArrayForEach(x, list) if (cJSON_IsString(x)) to->v[to->n++] = x->valuestring;
  if (one_more && !fa_json_words_have(list, one_more)) to->v[to->n++] = one_more;
  return true;
}

static const char *text_or_null(const cJSON *o, const char *key) {
  const char *text = fa_report_string(o, key);
  return *text ? text : NULL;
}

static fa_status take_mode(fa_repeat *r, const char *path, fa_error *err) {
  const cJSON *u = fa_report_at(r->root, "untrusted"), *differ = fa_report_at(u, "differ"),
              *failures = fa_report_at(r->root, "failures"), *first = failures ? failures->child : NULL;
  fa_cli *cli = &r->cli;
  cli->secret = text_or_null(u, "secret");
  cli->arithmetic = text_or_null(fa_report_at(u, "arithmetic"), "name");
  cli->memory_limit = fa_count_at(u, "memory_limit_bytes");
  if (cJSON_GetArraySize(differ) > 0 || !cli->secret)
    return fa_fail(
        err, FA_ERR_INPUT,
        "%s: it has no one secret and no one set of rules for all of its failures; take the report "
        "that it was merged of, or name the --backend, which is trusted then",
        path);
  if (!first) return FA_OK;
  cli->untrusted = true;
  cJSON *backend = cJSON_CreateStringArray((const char *[]){fa_failure_backend(first)}, 1);
  cJSON_AddItemToObject(r->root, "of the failures", backend);
  const bool good = take_words(fa_report_at(fa_report_at(u, "layers"), "left_out"), "hidden", &r->words[0],
                               &cli->without) &&
                    take_words(fa_report_at(u, "allow"), NULL, &r->words[1], &cli->allow) &&
                    take_words(backend, NULL, &r->words[2], &cli->backend) &&
                    take_words(fa_report_at(u, "hide"), NULL, &r->words[3], &cli->hide);
  return good ? FA_OK : fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

/* ---- which report ---- */

/* A journal has the secret of its run, which is not to be known before the end, and not all that the wall was made with. */
static fa_status check_unfinished(const fa_failure_word *word, fa_error *err) {
  char path[4200], *line = NULL;
  size_t size = 0;
  fa_report_journal_of(word->path, path, sizeof path);
  FILE *f = fopen(path, "re");
  cJSON *head = f && getline(&line, &size, f) > 0 ? cJSON_Parse(line) : NULL;
  const bool untrusted = fa_report_at(fa_report_at(head, "run"), "untrusted") != NULL;
  cJSON_Delete(head);
  free(line);
  if (f) fclose(f);
  if (!untrusted) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT,
                 "%s: its candidate is not trusted, and its run is not over: wait for it, or go on with it "
                 "(--resume); or name the --backend, which is trusted then",
                 word->path);
}

/* Reads the report of a word if its candidate is not to be trusted; else *root is NULL. Faults are left to whoever reads
 * its failures. */
static fa_status load_untrusted(const fa_failure_word *word, cJSON **root, fa_error *err) {
  fa_error unused;
  *root = NULL;
  if (fa_report_is_unfinished(word->path)) return check_unfinished(word, err);
  if (fa_report_load(word->path, root, &unused) != FA_OK) *root = NULL;
  if (fa_report_at(*root, "untrusted")) return FA_OK;
  cJSON_Delete(*root);
  *root = NULL;
  return FA_OK;
}

fa_status fa_repeat_open(const fa_cli *cli, fa_repeat *out, fa_error *err) {
  fa_failure_word first, word;
  *out = (fa_repeat){.cli = *cli};
  if (cli->backend.n) return FA_OK;
  for (int i = 0; i < cli->words.n; ++i) {
    cJSON *root;
    if (fa_failure_word_read(cli->words.v[i], &word, err) != FA_OK) return FA_OK; /* said when it is read */
    if (i == 0) first = word;
    const bool same = i > 0 && strcmp(first.path, word.path) == 0;
    if (same) continue;
    const fa_status status = load_untrusted(&word, &root, err);
    if (status != FA_OK) return status;
    if (i > 0 && (root || out->root)) {
      cJSON_Delete(root);
      return fa_fail(err, FA_ERR_INPUT, "%s: one report at a time, where a candidate is not trusted",
                     word.path);
    }
    out->root = root;
  }
  return out->root ? take_mode(out, first.path, err) : FA_OK;
}

int64_t fa_repeat_number(const cJSON *failure) {
  return fa_count_at(failure, "item");
}

void fa_repeat_free(fa_repeat *r) {
  for (int i = 0; i < 4; ++i) free(r->words[i]);
  cJSON_Delete(r->root);
}

fa_status fa_repeat_check_contract(const fa_repeat *r, const char *sha256, fa_error *err) {
  const char *was = fa_report_string(fa_report_at(r->root, "untrusted"), "contract_sha256");
  if (strcmp(was, sha256) == 0) return FA_OK;
  return fa_fail(
      err, FA_ERR_INPUT,
      "its hello is not that of the report (%.16s... instead of %.16s...), so that this is not what "
      "failed; name the --backend, which is trusted then",
      sha256, was);
}
