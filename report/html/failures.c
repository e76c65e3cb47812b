/* What the page's script gets of each failure: the report's item without what only programs read. */
#include "report/html/parts.h"

#include "report/journal_line.h"
#include "report/text/line.h"
#include "report/text/mode.h"

#include <stdlib.h>
#include <string.h>

#define MOST_WHOLE 1000 /* failures with all their worst elements and maps */
#define MOST 20000      /* in all */

static void put_case(FILE *out, const cJSON *recipe) {
  cJSON *exact = cJSON_Duplicate(recipe, 1);
  if (exact) exact = fa_report_exact_case(exact);
  char *text = exact ? cJSON_PrintUnformatted(exact) : NULL;
  fa_print_shell_word(out, text ? text : "{}");
  cJSON_free(text);
  cJSON_Delete(exact);
}

char *fa_page_command(const cJSON *root, const cJSON *failure, bool shrunk) {
  const cJSON *untrusted = fa_report_at(root, "untrusted"),
              *of_case = shrunk ? fa_report_at(failure, "shrunk") : failure;
  const char *seed = fa_report_string(of_case, "schedule_seed"), *repro = fa_report_string(failure, "repro");
  if (*fa_report_string(failure, "file")) return strdup(repro);
  char *mode = untrusted ? fa_mode_text(untrusted) : NULL, *text = NULL;
  size_t n = 0;
  FILE *out = untrusted && !mode ? NULL : open_memstream(&text, &n);
  if (!out) {
    free(mode);
    return NULL;
  }
  fprintf(out, "fa-verify run %s%s--backend ", mode ? mode : "", mode ? " " : "");
  free(mode);
  fa_print_shell_word(out, fa_report_string(failure, "backend"));
  if (*seed && strcmp(seed, "0") != 0) {
    fputs(" --schedule-seed ", out);
    fa_print_shell_word(out, seed);
  }
  fputs(" --case ", out);
  put_case(out, fa_report_at(of_case, "case"));
  fclose(out);
  return text;
}

static void drop_items_after(cJSON *array, int n) {
  while (cJSON_GetArraySize(array) > n) cJSON_DeleteItemFromArray(array, n);
}

static void slim_tensor(cJSON *t, bool whole) {
  cJSON *worst = cJSON_GetObjectItemCaseSensitive(t, "worst"), *w;
  const bool failed = cJSON_IsTrue(fa_report_at(t, "failed"));
  if (!failed) cJSON_DeleteItemFromObjectCaseSensitive(t, "worst");
  if (!whole) cJSON_DeleteItemFromObjectCaseSensitive(t, "map");
  if (!failed || !cJSON_IsArray(worst)) return;
  if (!whole) drop_items_after(worst, 1);
  cJSON_ArrayForEach(w, worst) {
    cJSON_DeleteItemFromObjectCaseSensitive(w, "got_hex");
    cJSON_DeleteItemFromObjectCaseSensitive(w, "want_hex");
  }
}

static void add_commands(cJSON *copy, const cJSON *root) {
  cJSON *shrunk = cJSON_GetObjectItemCaseSensitive(copy, "shrunk"), *const to[] = {copy, shrunk};
  for (int i = 0; i < (cJSON_IsObject(shrunk) ? 2 : 1); ++i) {
    char *command = fa_page_command(root, copy, i);
    if (command) cJSON_AddStringToObject(to[i], "run", command);
    free(command);
  }
}

static void put_failure(FILE *out, const cJSON *root, const cJSON *failure, bool whole) {
  cJSON *copy = cJSON_Duplicate(failure, 1), *t, *recipe;
  add_commands(copy, root);
  cJSON_ArrayForEach(t, cJSON_GetObjectItemCaseSensitive(copy, "tensors")) slim_tensor(t, whole);
  recipe = cJSON_DetachItemFromObjectCaseSensitive(copy, "case");
  /* As text: 64-bit numbers of a case are more than JavaScript can hold. */
  char *text = recipe ? cJSON_Print(recipe = fa_report_exact_case(recipe)) : NULL;
  if (text) cJSON_AddStringToObject(copy, "recipe", text);
  if (!whole) cJSON_AddBoolToObject(copy, "brief", true);
  fa_page_put_json(out, copy);
  cJSON_free(text);
  cJSON_Delete(recipe);
  cJSON_Delete(copy);
}

void fa_page_put_failures(FILE *out, const cJSON *root) {
  const cJSON *f;
  int n = 0;
  fputc('[', out);
  cJSON_ArrayForEach(f, fa_report_at(root, "failures")) {
    if (n == MOST) break;
    if (n) fputs(",\n", out);
    put_failure(out, root, f, n++ < MOST_WHOLE);
  }
  fputc(']', out);
}
