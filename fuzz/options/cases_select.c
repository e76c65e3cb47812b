#include "fuzz/options/cases_select.h"

#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "fuzz/generate/draw.h"
#include "fuzz/options/case_files.h"

#include <stdlib.h>
#include <string.h>

/* The schema is in the folder of the case files, and a wildcard over cases/ must work as expected. */
static bool is_schema(const char *path) {
  const char *slash = strrchr(path, '/');
  if (strcmp(slash ? slash + 1 : path, "schema.json") != 0) return false;
  fprintf(stderr, "%s: the schema of case files, left out\n", path);
  return true;
}

/* What the generator was asked for while files are read: they call a function without a context. */
static struct {
  fa_case_origin *v;
  int64_t n, capacity;
} drawn;

static fa_status generate_and_note(const char *profile, uint64_t seed, int64_t index, fa_case *out,
                                   fa_error *err) {
  const fa_status status = fa_generate(profile, seed, index, out, err);
  if (status != FA_OK) return status;
  if (drawn.n == drawn.capacity) {
    const int64_t capacity = 2 * drawn.capacity + 64;
    fa_case_origin *bigger = realloc(drawn.v, (size_t)capacity * sizeof *bigger);
    if (!bigger) {
      fa_case_free(out);
      return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    }
    drawn.v = bigger;
    drawn.capacity = capacity;
  }
  const int place = fa_generate_profile_find(profile); /* the file's own text does not live long */
  drawn.v[drawn.n++] = (fa_case_origin){fa_generate_profiles[place].name, seed, index};
  return FA_OK;
}

static bool is_that_case(const fa_case *c, const fa_case_origin *o) {
  fa_case again;
  if (fa_generate(o->profile, o->seed, o->index, &again, NULL) != FA_OK) return false;
  const bool same = strcmp(c->name, again.name) == 0 && fa_case_equal(c, &again);
  fa_case_free(&again);
  return same;
}

/* Drawn cases stand in the list in the order in which they were drawn, others between them. */
static fa_status find_origins(const fa_case_list *list, fa_case_origin **origins, fa_error *err) {
  *origins = NULL;
  if (drawn.n == 0) return FA_OK;
  *origins = calloc((size_t)list->n + 1, sizeof **origins);
  if (!*origins) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  int64_t next = 0;
  for (int64_t i = 0; i < list->n && next < drawn.n; ++i)
    if (is_that_case(&list->v[i], &drawn.v[next])) (*origins)[i] = drawn.v[next++];
  return FA_OK;
}

fa_status fa_cli_load_cases(const fa_cli *cli, fa_case_list *list, fa_case_origin **origins, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < cli->cases.n; ++i) {
    char path[4096];
    status = fa_case_files_find(cli->cases.v[i], path, sizeof path, err);
    if (status != FA_OK || is_schema(path)) continue;
    status = fa_case_file_load(path, generate_and_note, list, err);
    if (status == FA_ERR_IO) status = FA_ERR_INPUT; /* the user named it */
  }
  for (int i = 0; status == FA_OK && i < cli->case_text.n; ++i) {
    fa_case c;
    status = fa_case_from_text(cli->case_text.v[i], &c, err);
    if (status != FA_OK)
      fa_error_prefix(err, "--case");
    else
      status = fa_case_list_push(list, &c);
  }
  if (status == FA_OK && origins) status = find_origins(list, origins, err);
  free(drawn.v);
  memset(&drawn, 0, sizeof drawn);
  return status;
}
