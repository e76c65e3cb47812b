#include "fuzz/untrusted/mode.h"

#include "report/text/mode.h"

#include <cjson/cJSON.h>

void fa_terms_add_to_report(const fa_wall_terms *terms, cJSON *untrusted) {
  if (terms->n_allow)
    cJSON_AddItemToObject(untrusted, "allow", cJSON_CreateStringArray(terms->allow, terms->n_allow));
  if (terms->n_hide)
    cJSON_AddItemToObject(untrusted, "hide", cJSON_CreateStringArray(terms->hide, terms->n_hide));
  if (terms->memory_bytes)
    cJSON_AddNumberToObject(untrusted, "memory_limit_bytes", (double)terms->memory_bytes);
}

static void add_layers(cJSON *o, const char *key, fa_layer_set set) {
  cJSON *list = cJSON_AddArrayToObject(o, key);
  for (int l = 0; l < FA_N_LAYERS; ++l)
    if (fa_layer_in(set, (fa_layer)l)) cJSON_AddItemToArray(list, cJSON_CreateString(fa_layers[l].name));
}

void fa_rules_add_mode(const fa_rules *r, cJSON *untrusted) {
  cJSON *layers = cJSON_AddObjectToObject(untrusted, "layers");
  add_layers(layers, "in_force", r->layers);
  add_layers(layers, "left_out", FA_ALL_LAYERS & ~r->layers);
  cJSON *a = cJSON_AddObjectToObject(untrusted, "arithmetic");
  cJSON_AddStringToObject(a, "name", r->arithmetic);
  cJSON *ignored = cJSON_AddObjectToObject(a, "ignored");
  for (int t = 0; t < FA_HELLO_DTYPES; ++t)
    if (r->ignored[t][0]) cJSON_AddStringToObject(ignored, fa_dtype_name((fa_dtype)t), r->ignored[t]);
}

char *fa_rules_mode(const fa_rules *r, const fa_wall_terms *terms) {
  cJSON *untrusted = cJSON_CreateObject();
  fa_terms_add_to_report(terms, untrusted);
  fa_rules_add_mode(r, untrusted);
  char *text = fa_mode_text(untrusted);
  cJSON_Delete(untrusted);
  return text;
}
