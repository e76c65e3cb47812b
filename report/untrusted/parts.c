#include "report/untrusted/parts.h"

#include "report/untrusted/words.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

const char *const fa_untrusted_always[] = {"bounds", "poison", "guards", "repeat", NULL};

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

static const char *string_at(const cJSON *o, const char *key) {
  const char *text = cJSON_GetStringValue(at(o, key));
  return text ? text : "";
}

/* ---- gathering ---- */

static bool add_part(cJSON *parts, cJSON *part) {
  if (part && cJSON_AddItemToArray(parts, part)) return true;
  cJSON_Delete(part);
  return false;
}

static cJSON *part_of(const cJSON *untrusted, const char *path) {
  cJSON *part = untrusted ? cJSON_Duplicate(untrusted, 1) : cJSON_CreateObject();
  const bool good =
      cJSON_AddStringToObject(part, "report", path) && (untrusted || cJSON_AddTrueToObject(part, "trusted"));
  if (good) return part;
  cJSON_Delete(part);
  return NULL;
}

bool fa_untrusted_gather(cJSON *parts, const cJSON *head, const char *path) {
  const cJSON *untrusted = at(head, "untrusted"), *own = at(untrusted, "parts"), *part;
  bool good = true;
  if (!cJSON_IsArray(own)) return add_part(parts, part_of(untrusted, path));
  cJSON_ArrayForEach(part, own) good = good && add_part(parts, cJSON_Duplicate(part, 1));
  return good;
}

/* ---- in an order that does not depend on that of the command line ---- */

static int compare_parts(const void *a, const void *b) {
  const cJSON *x = *(cJSON *const *)a, *y = *(cJSON *const *)b;
  const int by_path = strcmp(string_at(x, "report"), string_at(y, "report"));
  return by_path ? by_path : strcmp(string_at(x, "commitment"), string_at(y, "commitment"));
}

static void sort_parts(cJSON *parts) {
  const int n = cJSON_GetArraySize(parts);
  cJSON **part = calloc((size_t)n + 1, sizeof(cJSON *));
  if (!part) return; /* the order is for readers alone */
  for (int i = 0; i < n; ++i) part[i] = cJSON_DetachItemFromArray(parts, 0);
  qsort(part, (size_t)n, sizeof *part, compare_parts);
  for (int i = 0; i < n; ++i) cJSON_AddItemToArray(parts, part[i]);
  free(part);
}

/* ---- layers ---- */

static const cJSON *layers_of(const cJSON *part, const char *key) {
  return at(at(part, "layers"), key);
}

static bool has_layer(const cJSON *part, const char *name) {
  if (!at(part, "trusted")) return fa_json_words_have(layers_of(part, "in_force"), name);
  for (int i = 0; fa_untrusted_always[i]; ++i)
    if (strcmp(fa_untrusted_always[i], name) == 0) return true;
  return false;
}

static bool all_have(const cJSON *parts, const char *name) {
  const cJSON *part;
  cJSON_ArrayForEach(part, parts) if (!has_layer(part, name)) return false;
  return true;
}

/* A layer that any part names is in force if all have it, and else it is left out: of a part that says nothing too. */
static void join_layers(cJSON *o, const cJSON *parts) {
  static const char *const keys[] = {"in_force", "left_out"};
  cJSON *layers = cJSON_AddObjectToObject(o, "layers"), *list[2];
  const cJSON *part, *word;
  for (int k = 0; k < 2; ++k) list[k] = cJSON_AddArrayToObject(layers, keys[k]);
  cJSON_ArrayForEach(part, parts) for (int k = 0; k < 2; ++k)
      cJSON_ArrayForEach(word, layers_of(part, keys[k])) {
    const char *name = cJSON_GetStringValue(word);
    if (name) fa_json_words_add(list[!all_have(parts, name)], name);
  }
}

/* ---- what all say ---- */

static bool all_agree(const cJSON *parts, const char *key) {
  const cJSON *first = at(parts->child, key), *part;
  cJSON_ArrayForEach(part, parts) if (!cJSON_Compare(first, at(part, key), 1) &&
                                      (first || at(part, key))) return false;
  return true;
}

static void copy_common(cJSON *o, const cJSON *parts) {
  static const char *const keys[] = {
      "wall",   "contract",   "contract_sha256", "cases_sha256", "commitment",
      "secret", "arithmetic", "allow",           "hide",         "memory_limit_bytes"};
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    if (at(parts->child, keys[k]) && all_agree(parts, keys[k]))
      cJSON_AddItemToObject(o, keys[k], cJSON_Duplicate(at(parts->child, keys[k]), 1));
}

/* True if two parts that are not trusted say something else; what a trusted one says nothing of is no difference. */
static bool some_differ(const cJSON *parts, const char *key) {
  const cJSON *part, *first = NULL;
  cJSON_ArrayForEach(part, parts) {
    if (at(part, "trusted")) continue;
    const cJSON *its = at(part, key), *others = at(first, key);
    if (first && (its || others) && !cJSON_Compare(its, others, 1)) return true;
    if (!first) first = part;
  }
  return false;
}

static void name_differences(cJSON *o, const cJSON *parts) {
  static const char *const keys[][2] = {{"layers", "layers"},
                                        {"contract", "contract_sha256"},
                                        {"arithmetic", "arithmetic"},
                                        {"hide", "hide"},
                                        {"memory_limit_bytes", "memory_limit_bytes"}};
  cJSON *list = cJSON_AddArrayToObject(o, "differ");
  if (!all_agree(parts, "trusted")) fa_json_words_add(list, "trusted");
  for (size_t k = 0; k < sizeof keys / sizeof *keys; ++k)
    if (some_differ(parts, keys[k][1])) fa_json_words_add(list, keys[k][0]);
}

/* ---- counts and claims ---- */

static void add_number(cJSON *to, const char *key, const cJSON *n) {
  cJSON *sum = cJSON_GetObjectItemCaseSensitive(to, key);
  if (!cJSON_IsNumber(n)) return;
  if (sum)
    cJSON_SetNumberValue(sum, sum->valuedouble + n->valuedouble);
  else
    cJSON_AddNumberToObject(to, key, n->valuedouble);
}

static void add_counts(cJSON *o, const cJSON *parts) {
  const cJSON *part, *n;
  cJSON *traps = cJSON_CreateObject();
  cJSON_ArrayForEach(part, parts) {
    add_number(o, "cases", at(part, "cases"));
    add_number(o, "hidden", at(part, "hidden"));
    cJSON_ArrayForEach(n, at(part, "traps")) add_number(traps, n->string, n);
  }
  cJSON_AddItemToObject(o, "traps", traps);
}

static bool is_tested(const cJSON *parts, const char *contract, const char *word) {
  const cJSON *part;
  cJSON_ArrayForEach(part, parts) if (strcmp(string_at(part, "contract_sha256"), contract) == 0 &&
                                      fa_json_words_have(at(at(part, "claims"), "tested"), word)) return true;
  return false;
}

/* What each contract claims and no part with that contract has tested. */
static void add_untested(cJSON *claims, const cJSON *parts) {
  cJSON *list = cJSON_AddArrayToObject(claims, "untested");
  const cJSON *part, *word;
  cJSON_ArrayForEach(part, parts) cJSON_ArrayForEach(word, at(at(part, "claims"), "untested")) {
    const char *name = cJSON_GetStringValue(word);
    if (name && !is_tested(parts, string_at(part, "contract_sha256"), name)) fa_json_words_add(list, name);
  }
}

/* The words of all parts, without those of another list. */
static void add_united(cJSON *claims, const char *key, const cJSON *parts, const cJSON *without) {
  cJSON *list = cJSON_AddArrayToObject(claims, key);
  const cJSON *part, *word;
  cJSON_ArrayForEach(part, parts) cJSON_ArrayForEach(word, at(at(part, "claims"), key)) {
    const char *name = cJSON_GetStringValue(word);
    if (name && !fa_json_words_have(without, name)) fa_json_words_add(list, name);
  }
}

static void add_not_judged(cJSON *claims, const cJSON *parts) {
  cJSON *seen = cJSON_CreateArray();
  const cJSON *part;
  char text[1200];
  cJSON_ArrayForEach(part, parts) {
    const char *said = string_at(at(part, "claims"), "not_judged");
    if (*said) fa_json_words_add(seen, said);
  }
  fa_json_words_join(seen, "; ", text, sizeof text);
  cJSON_AddStringToObject(claims, "not_judged", text);
  cJSON_Delete(seen);
}

static void join_claims(cJSON *o, const cJSON *parts, bool counted_once) {
  cJSON *claims = cJSON_AddObjectToObject(o, "claims");
  const cJSON *part;
  add_untested(claims, parts);
  add_united(claims, "tested", parts, at(claims, "untested"));
  add_united(claims, "not_made", parts, NULL);
  add_not_judged(claims, parts);
  cJSON_ArrayForEach(part, parts) if (counted_once)
      add_number(claims, "cases_outside", at(at(part, "claims"), "cases_outside"));
}

/* ---- all of it ---- */

void fa_untrusted_join(cJSON *head, cJSON *parts, bool counted_once) {
  const cJSON *part;
  bool any = false;
  cJSON_ArrayForEach(part, parts) any |= !at(part, "trusted");
  cJSON_DeleteItemFromObjectCaseSensitive(head, "untrusted");
  cJSON *o = any ? cJSON_AddObjectToObject(head, "untrusted") : NULL;
  if (!o) {
    cJSON_Delete(parts);
    return;
  }
  sort_parts(parts);
  copy_common(o, parts);
  join_layers(o, parts);
  name_differences(o, parts);
  if (counted_once) add_counts(o, parts);
  join_claims(o, parts, counted_once);
  cJSON_AddItemToObject(o, "parts", parts);
}
