/* The merged report in other forms: as a tree, and as JUnit XML. */
#include "report/merge/parts.h"

#include "cases/base/atomic_file.h"
#include "report/junit.h"
#include "report/printed.h"

#include <cjson/cJSON.h>

/* ---- a tree ---- */

typedef struct lists {
  cJSON *cases;
} lists;

static fa_status add_case(void *ctx, const fa_merged_case *c, fa_error *err) {
  const lists *l = ctx;
  cJSON *copy = cJSON_Duplicate(c->entry, 1);
  if (copy && cJSON_AddItemToArray(l->cases, copy)) return FA_OK;
  cJSON_Delete(copy);
  return fa_fail(err, FA_ERR_MEMORY, "merge: out of memory");
}

static fa_status add_failures(fa_merged *m, cJSON *failures, fa_error *err) {
  for (int64_t i = 0; i < m->failures.n; ++i) {
    cJSON *failure = fa_merged_failure(m, i);
    if (!failure) return fa_fail(err, FA_ERR_IO, "failure %lld cannot be read again", (long long)i);
    cJSON_AddItemToArray(failures, failure);
  }
  return FA_OK;
}

fa_status fa_merged_tree(fa_merged *m, cJSON **root, fa_error *err) {
  cJSON *tree = cJSON_Duplicate(m->head, 1);
  lists l = {cJSON_GetObjectItemCaseSensitive(tree, "cases")};
  if (!tree) return fa_fail(err, FA_ERR_MEMORY, "merge: out of memory");
  fa_status status = fa_merged_each(m, add_case, &l, err);
  if (status == FA_OK) status = add_failures(m, cJSON_GetObjectItemCaseSensitive(tree, "failures"), err);
  if (status == FA_OK)
    *root = tree;
  else
    cJSON_Delete(tree);
  return status;
}

/* ---- JUnit ---- */

static fa_status put_case(void *ctx, const fa_merged_case *c, fa_error *err) {
  (void)err;
  fa_junit_put_case(ctx, c->entry, c->failure, c->place);
  return FA_OK;
}

fa_status fa_merged_write_junit(fa_merged *m, const char *path, fa_error *err) {
  fa_new_file to;
  fa_junit junit;
  fa_status status = fa_new_file_open(&to, path, err);
  if (status != FA_OK) return status;
  fa_junit_begin(&junit, to.file, m->head, m->failures.n);
  status = fa_merged_each(m, put_case, &junit, err);
  fa_junit_end(&junit);
  return fa_new_file_close(&to, status, err);
}
