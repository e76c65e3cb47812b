/* --require from text and back: its argument, its file, its place in a report. */
#include "cases/base/atomic_file.h"
#include "cases/base/json.h"
#include "cases/tensors/table.h"
#include "report/journal_line.h"
#include "report/printed.h"
#include "report/require_kinds.h"

#include <stdlib.h>
#include <string.h>

#define KEYS "judged, features, dtypes, families, passes, outputs, cases, whole"

static fa_status add(fa_require *r, int kind, const char *text, fa_error *err) {
  fa_require_item *bigger = realloc(r->item, (size_t)(r->n + 1) * sizeof *bigger);
  if (bigger) r->item = bigger;
  char *copy = bigger ? strdup(text) : NULL;
  if (!copy) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  r->item[r->n++] = (fa_require_item){.kind = kind, .text = copy};
  return FA_OK;
}

/* ---- what the keys may hold ---- */

static const char *dtype_at(int i) {
  static const char *const names[] = {"f16", "bf16", "f32", NULL};
  return names[i];
}

static const char *family_at(int i) {
  return i < FA_N_FAMILIES ? fa_family_name((fa_family)i) : NULL;
}

static const char *pass_at(int i) {
  static const char *const names[] = {"forward", "backward", NULL};
  return names[i];
}

static const char *output_at(int i) {
  static const fa_tensor_id outputs[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
  return i < (int)(sizeof outputs / sizeof *outputs) ? fa_tensor_id_name(outputs[i]) : NULL;
}

static fa_require_word vocabulary(int kind, fa_require_word features) {
  switch (kind) {
  case FA_REQUIRE_FEATURE:
    return features;
  case FA_REQUIRE_DTYPE:
    return dtype_at;
  case FA_REQUIRE_FAMILY:
    return family_at;
  case FA_REQUIRE_PASS:
    return pass_at;
  case FA_REQUIRE_OUTPUT:
    return output_at;
  default:
    return NULL;
  }
}

static fa_status check_word(const char *text, fa_require_word word, const char *place, fa_error *err) {
  char all[900];
  size_t used = 0;
  for (int i = 0; word(i); ++i)
    if (strcmp(word(i), text) == 0) return FA_OK;
  for (int i = 0; word(i) && used < sizeof all; ++i)
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", word(i));
  return fa_fail(err, FA_ERR_INPUT, "%s: \"%.60s\" is none of %s", place, text, all);
}

/* ---- the object ---- */

static fa_status read_list(const cJSON *list, int kind, fa_require_word features, fa_require *out,
                           fa_error *err) {
  const fa_require_word word = vocabulary(kind, features);
  const cJSON *x;
  int i = 0;
  if (!cJSON_IsArray(list))
    return fa_fail(err, FA_ERR_INPUT, "$.%s: a list of words is needed", list->string);
  cJSON_ArrayForEach(x, list) {
    char place[64];
    snprintf(place, sizeof place, "$.%s[%d]", list->string, i++);
    if (!cJSON_IsString(x) || !*x->valuestring)
      return fa_fail(err, FA_ERR_INPUT, "%s: a word is needed", place);
    fa_status status = word ? check_word(x->valuestring, word, place, err) : FA_OK;
    if (status == FA_OK) status = add(out, kind, x->valuestring, err);
    if (status != FA_OK) return status;
  }
  return FA_OK;
}

static fa_status read_judged(const cJSON *x, fa_require *out, fa_error *err) {
  double share;
  if (!cJSON_IsString(x) || !fa_require_share(x->valuestring, &share))
    return fa_fail(err, FA_ERR_INPUT, "$.judged: a share above 0 is needed, such as \"90%%\"");
  return add(out, FA_REQUIRE_JUDGED, x->valuestring, err);
}

static fa_status read_object(const cJSON *root, fa_require_word features, fa_require *out, fa_error *err) {
  const cJSON *x;
  if (!cJSON_IsObject(root))
    return fa_fail(err, FA_ERR_INPUT, "$: an object is needed, with keys out of " KEYS);
  cJSON_ArrayForEach(x, root) {
    int kind = 0;
    while (kind < FA_REQUIRE_N_KINDS && strcmp(fa_require_keys[kind], x->string) != 0) ++kind;
    if (kind == FA_REQUIRE_N_KINDS)
      return fa_fail(err, FA_ERR_INPUT, "$: \"%.60s\" is no key; allowed are " KEYS, x->string);
    const fa_status status =
        kind == FA_REQUIRE_JUDGED ? read_judged(x, out, err) : read_list(x, kind, features, out, err);
    if (status != FA_OK) return status;
  }
  return out->n > 0 ? FA_OK : fa_fail(err, FA_ERR_INPUT, "$: it requires nothing; keys are " KEYS);
}

static fa_status read_file(const char *path, fa_require_word features, fa_require *out, fa_error *err) {
  char *text = NULL;
  size_t n = 0;
  cJSON *root = NULL;
  if (fa_file_read(path, &text, &n, err) != FA_OK) {
    const fa_error why = *err;
    return fa_fail(err, FA_ERR_INPUT,
                   "--require: %.300s; all, a share such as 90%%, or a JSON file is needed", why.text);
  }
  fa_status status = fa_json_parse(text, n, path, &root, err);
  free(text);
  if (status != FA_OK) return status;
  status = read_object(root, features, out, err);
  if (status != FA_OK) fa_error_prefix(err, "%s", path);
  cJSON_Delete(root);
  return status;
}

fa_status fa_require_read(const char *text, fa_require_word word, fa_require *out, fa_error *err) {
  double share;
  *out = (fa_require){0};
  const size_t n = strlen(text);
  if (strcmp(text, "all") == 0) return add(out, FA_REQUIRE_JUDGED, "100%", err);
  if (fa_require_share(text, &share)) return add(out, FA_REQUIRE_JUDGED, text, err);
  if (n > 0 && text[n - 1] == '%')
    return fa_fail(err, FA_ERR_INPUT, "--require %s: a share is above 0%% and at most 100%%", text);
  const fa_status status = read_file(text, word, out, err);
  if (status != FA_OK) fa_require_free(out);
  return status;
}

/* ---- in a report ---- */

static void add_wanted(cJSON *to, const fa_require_item *item) {
  const char *key = fa_require_keys[item->kind];
  if (item->kind == FA_REQUIRE_JUDGED) {
    cJSON_AddStringToObject(to, key, item->text);
    return;
  }
  cJSON *list = cJSON_GetObjectItemCaseSensitive(to, key);
  if (!list) list = cJSON_AddArrayToObject(to, key);
  cJSON_AddItemToArray(list, cJSON_CreateString(item->text));
}

cJSON *fa_require_to_json(const fa_require *r) {
  cJSON *o = cJSON_CreateObject(), *wanted = cJSON_AddObjectToObject(o, "wanted");
  cJSON_AddBoolToObject(o, "met", fa_require_unmet(r) == 0);
  cJSON *items = cJSON_AddArrayToObject(o, "items");
  for (int i = 0; i < r->n; ++i) {
    const fa_require_item *item = &r->item[i];
    add_wanted(wanted, item);
    cJSON *x = cJSON_CreateObject();
    cJSON_AddStringToObject(x, "what", fa_require_keys[item->kind]);
    cJSON_AddStringToObject(x, "wanted", item->text);
    cJSON_AddNumberToObject(x, "cases", (double)item->selected);
    cJSON_AddNumberToObject(x, "judged", (double)item->judged);
    if (item->sampled) cJSON_AddNumberToObject(x, "sampled", (double)item->sampled);
    cJSON_AddBoolToObject(x, "met", fa_require_is_met(item));
    cJSON_AddStringToObject(x, "reason", item->why);
    cJSON_AddItemToArray(items, x);
  }
  return o;
}

fa_status fa_require_from_json(const cJSON *require, fa_require *out, fa_error *err) {
  *out = (fa_require){0};
  const fa_status status = read_object(cJSON_GetObjectItemCaseSensitive(require, "wanted"), NULL, out, err);
  if (status != FA_OK) fa_require_free(out);
  return status;
}

fa_status fa_require_note_entry(fa_require *r, const cJSON *entry, fa_error *err) {
  fa_result *brief = malloc(sizeof *brief);
  if (!brief) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_result_init(brief);
  if (!fa_state_from_name(fa_report_string(entry, "state"), &brief->state)) brief->state = FA_ERROR;
  snprintf(brief->reason, sizeof brief->reason, "%s", fa_report_string(entry, "reason"));
  snprintf(brief->notes, sizeof brief->notes, "%s", fa_report_string(entry, "notes"));
  brief->name = strdup(fa_report_string(entry, "name"));
  fa_report_read_judged(entry, brief);
  brief->not_delivered = fa_report_tensors_at(entry, "not_delivered");
  const fa_status status = fa_sampled_read(entry, &brief->sampled.asked, err);
  if (status == FA_OK) fa_require_note(r, brief);
  fa_result_free(brief);
  free(brief);
  return status;
}

void fa_require_put(const fa_require *r, cJSON *root) {
  cJSON_DeleteItemFromObjectCaseSensitive(root, "require");
  cJSON_AddItemToObject(root, "require", fa_require_to_json(r));
}
