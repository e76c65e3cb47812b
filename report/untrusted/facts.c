#include "report/untrusted/facts.h"

#include "report/untrusted/words.h"

#include <cjson/cJSON.h>

#include <stdbool.h>
#include <stdio.h>

static const cJSON *at(const cJSON *o, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(o, key);
}

/* ---- texts ---- */

static void in_force(const cJSON *u, char *out, size_t size) {
  fa_json_words_join(at(at(u, "layers"), "in_force"), ", ", out, size);
}

static void left_out(const cJSON *u, char *out, size_t size) {
  fa_json_words_join(at(at(u, "layers"), "left_out"), ", ", out, size);
}

static void differ(const cJSON *u, char *out, size_t size) {
  fa_json_words_join(at(u, "differ"), ", ", out, size);
}

static void trusted(const cJSON *u, char *out, size_t size) {
  cJSON *paths = cJSON_CreateArray();
  const cJSON *part;
  cJSON_ArrayForEach(part, at(u, "parts")) {
    const char *path = cJSON_GetStringValue(at(part, "report"));
    if (at(part, "trusted") && path) fa_json_words_add(paths, path);
  }
  fa_json_words_join(paths, ", ", out, size);
  cJSON_Delete(paths);
}

static void string_of(const cJSON *o, const char *key, char *out, size_t size) {
  const char *text = cJSON_GetStringValue(at(o, key));
  snprintf(out, size, "%s", text ? text : "");
}

static void contract(const cJSON *u, char *out, size_t size) {
  string_of(u, "contract_sha256", out, size);
}

static void commitment(const cJSON *u, char *out, size_t size) {
  string_of(u, "commitment", out, size);
}

static void secret(const cJSON *u, char *out, size_t size) {
  string_of(u, "secret", out, size);
}

static void not_judged(const cJSON *u, char *out, size_t size) {
  string_of(at(u, "claims"), "not_judged", out, size);
}

static void untested(const cJSON *u, char *out, size_t size) {
  fa_json_words_join(at(at(u, "claims"), "untested"), " ", out, size);
}

/* ---- all ---- */

int fa_untrusted_facts(const cJSON *root, fa_untrusted_fact fact[FA_UNTRUSTED_FACTS]) {
  static const struct {
    const char *name, *label;
    void (*put)(const cJSON *, char *, size_t);
  } all[FA_UNTRUSTED_FACTS] = {
      {"layers_in_force", "layers in force", in_force},
      {"layers_left_out", "LAYERS LEFT OUT, and what they keep off is not kept off", left_out},
      {"differ", "THE REPORTS DIFFER, and what is in force is so in all of them", differ},
      {"trusted", "THE KERNEL WAS TRUSTED, without a wall and with public data, in", trusted},
      {"contract", "contract", contract},
      {"commitment", "commitment", commitment},
      {"secret", "secret", secret},
      {"not_judged", "NOT JUDGED", not_judged},
      {"untested", "CLAIMED, AND TESTED BY NO CASE", untested}};
  const cJSON *untrusted = at(root, "untrusted");
  int n = 0;
  for (int i = 0; untrusted && i < FA_UNTRUSTED_FACTS; ++i) {
    fact[n].name = all[i].name;
    fact[n].label = all[i].label;
    all[i].put(untrusted, fact[n].text, sizeof fact[n].text);
    n += fact[n].text[0] != 0;
  }
  return n;
}

/* ---- the verdict ---- */

static bool holds_to_contract(const cJSON *untrusted) {
  const cJSON *parts = at(untrusted, "parts"), *part;
  cJSON_ArrayForEach(part, parts) if (holds_to_contract(part)) return true;
  return !parts && fa_json_words_have(at(at(untrusted, "layers"), "in_force"), "contract");
}

const cJSON *fa_untrusted_failing_claims(const cJSON *root) {
  const cJSON *untrusted = at(root, "untrusted");
  return holds_to_contract(untrusted) ? at(at(untrusted, "claims"), "untested") : NULL;
}
