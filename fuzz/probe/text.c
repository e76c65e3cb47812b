#include "fuzz/probe/text.h"

#include "cases/tensors/table.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

const char *fa_probe_confidence_name(fa_probe_confidence c) {
  static const char *const names[] = {"not asked", "no answer", "untold", "likely", "certain"};
  return names[c];
}

const fa_finding *fa_probe_find(const fa_probe_report *r, const char *field) {
  for (int i = 0; i < r->n; ++i)
    if (strcmp(r->v[i].field, field) == 0) return &r->v[i];
  return NULL;
}

/* ---- table ---- */

void fa_probe_print(FILE *to, const fa_probe_report *r, bool evidence) {
  fprintf(to, "%s: ", fa_dtype_name(r->dtype));
  if (!r->usable) {
    fprintf(to, "not asked: %s\n", r->why_not);
    return;
  }
  fprintf(to, "%d calls, %.1f s\n", r->n_calls, r->seconds);
  for (int i = 0; i < r->n; ++i) {
    const fa_finding *f = &r->v[i];
    fprintf(to, "  %-20s %-30s %-9s", f->field, f->value[0] ? f->value : "?",
            fa_probe_confidence_name(f->confidence));
    if (f->contradicts)
      fprintf(to, " %s: %s!", f->convention ? "the case asks for" : "declared", f->expected);
    fputc('\n', to);
    if (evidence || f->confidence <= FA_PROBE_UNTOLD || f->contradicts) fprintf(to, "    %s\n", f->evidence);
  }
}

/* ---- hello ---- */

static bool add_outputs(cJSON *object, const fa_contract *c) {
  static const fa_tensor_id ids[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV};
  cJSON *list = cJSON_CreateArray();
  bool all = true;
  for (size_t i = 0; i < sizeof ids / sizeof *ids; ++i) {
    const bool has = c->outputs >> ids[i] & 1;
    all &= has;
    if (has) cJSON_AddItemToArray(list, cJSON_CreateString(fa_tensor_id_name(ids[i])));
  }
  if (all) {
    cJSON_Delete(list);
    return true;
  }
  return cJSON_AddItemToObject(object, "outputs", list);
}

static void add_lse(cJSON *object, const fa_declaration *d) {
  cJSON *lse = cJSON_CreateObject();
  const fa_contract *c = &d->contract;
  const unsigned given = d->contract_given;
  if (given & FA_CONTRACT_LSE_BASE) cJSON_AddStringToObject(lse, "base", c->lse_base_2 ? "2" : "e");
  if (given & FA_CONTRACT_LSE_UNSCALED) cJSON_AddBoolToObject(lse, "scaled", !c->lse_unscaled);
  if (given & FA_CONTRACT_LSE_OF_EMPTY)
    cJSON_AddStringToObject(lse, "empty", fa_lse_of_empty_name(c->lse_of_empty));
  if (given & FA_CONTRACT_LSE_ALIBI) cJSON_AddStringToObject(lse, "alibi", fa_lse_alibi_name(c->lse_alibi));
  if (lse->child)
    cJSON_AddItemToObject(object, "lse", lse);
  else
    cJSON_Delete(lse);
  if (given & FA_CONTRACT_O_OF_EMPTY)
    cJSON_AddStringToObject(object, "empty_o", fa_o_of_empty_name(c->o_of_empty));
}

static bool is_number(const char *text) {
  char *end = NULL;
  strtod(text, &end);
  return end != text && !*end;
}

static cJSON *arithmetic_of(const fa_arithmetic *a, fa_dtype dtype) {
  fa_arithmetic base;
  cJSON *object = cJSON_CreateObject();
  const char *key, *unused;
  char value[64], usual[64];
  if (!fa_arithmetic_named(a->name, dtype, &base)) return object;
  cJSON_AddStringToObject(object, "name", a->name);
  for (int i = 0; fa_arithmetic_get(a, i, &key, value, sizeof value); ++i) {
    if (!fa_arithmetic_get(&base, i, &unused, usual, sizeof usual) || strcmp(value, usual) == 0) continue;
    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
      cJSON_AddBoolToObject(object, key, value[0] == 't');
    else if (is_number(value))
      cJSON_AddRawToObject(object, key, value);
    else
      cJSON_AddStringToObject(object, key, value);
  }
  return object;
}

cJSON *fa_probe_hello(const fa_probe_report *r, int n) {
  cJSON *object = cJSON_CreateObject(), *all = cJSON_CreateObject();
  const fa_probe_report *first = NULL;
  for (int i = 0; i < n; ++i) {
    if (!r[i].usable) continue;
    if (!first) first = &r[i];
    cJSON_AddItemToObject(all, fa_dtype_name(r[i].dtype), arithmetic_of(&r[i].found.arithmetic, r[i].dtype));
  }
  if (first) {
    add_outputs(object, &first->found.contract);
    add_lse(object, &first->found);
  }
  cJSON_AddItemToObject(object, "arithmetic", all);
  return object;
}

cJSON *fa_probe_json(const fa_probe_report *r) {
  cJSON *object = cJSON_CreateObject();
  cJSON_AddStringToObject(object, "dtype", fa_dtype_name(r->dtype));
  if (!r->usable) {
    cJSON_AddStringToObject(object, "not_asked", r->why_not);
    return object;
  }
  cJSON_AddNumberToObject(object, "calls", r->n_calls);
  cJSON *list = cJSON_AddArrayToObject(object, "findings");
  for (int i = 0; i < r->n; ++i) {
    const fa_finding *f = &r->v[i];
    cJSON *item = cJSON_CreateObject();
    cJSON_AddStringToObject(item, "field", f->field);
    cJSON_AddStringToObject(item, "value", f->value);
    cJSON_AddStringToObject(item, "confidence", fa_probe_confidence_name(f->confidence));
    cJSON_AddStringToObject(item, "evidence", f->evidence);
    if (f->expected[0]) cJSON_AddStringToObject(item, f->convention ? "asked" : "declared", f->expected);
    if (f->contradicts) cJSON_AddTrueToObject(item, "contradicts");
    cJSON_AddItemToArray(list, item);
  }
  return object;
}
