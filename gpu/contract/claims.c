#include "gpu/contract/claims.h"

#include "cases/tensors/table.h"
#include "gpu/contract/features.h"

#include <cjson/cJSON.h>

/* ---- words and their bits ---- */

static const char *family_at(int i) {
  return i < FA_N_FAMILIES ? fa_family_name((fa_family)i) : NULL;
}

static const char *dtype_at(int i) {
  return i < FA_HELLO_DTYPES ? fa_dtype_name((fa_dtype)i) : NULL;
}

static const char *pass_at(int i) {
  static const char *const names[] = {"forward", "backward"};
  return i < 2 ? names[i] : NULL;
}

/* Outputs that every call may have, in the order of this table. */
static const fa_tensor_id outputs[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};
enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };

static const char *output_at(int i) {
  return i < N_OUTPUTS ? fa_tensor_id_name(outputs[i]) : NULL;
}

static uint64_t outputs_of(const fa_hello *h) {
  const bool backward = h->passes & FA_PASS_BACKWARD;
  uint64_t bits = 0;
  for (int i = 0; i < N_OUTPUTS; ++i) {
    const bool is_gradient = outputs[i] != FA_T_O && outputs[i] != FA_T_LSE;
    const bool written = h->declaration[0].contract.outputs >> outputs[i] & 1;
    bits |= (uint64_t)(written && (backward || !is_gradient)) << i;
  }
  return bits;
}

static uint64_t passes_of(const fa_hello *h) {
  return (uint64_t)(h->passes & FA_PASS_FORWARD ? 1 : 0) | (uint64_t)(h->passes & FA_PASS_BACKWARD ? 2 : 0);
}

/* ---- the parts ---- */

static void add_words(cJSON *to, const char *key, uint64_t bits, fa_word_of word) {
  cJSON *list = cJSON_AddArrayToObject(to, key);
  for (int i = 0; word(i); ++i)
    if (bits >> i & 1) cJSON_AddItemToArray(list, cJSON_CreateString(word(i)));
}

static void add_lists(cJSON *to, const fa_hello *h, bool claimed) {
  const uint64_t flip = claimed ? 0 : ~(uint64_t)0;
  add_words(to, "families", h->families ^ flip, family_at);
  add_words(to, "dtypes", h->dtypes ^ flip, dtype_at);
  add_words(to, "features", h->features ^ flip, fa_feature_name);
  add_words(to, "passes", passes_of(h) ^ flip, pass_at);
  add_words(to, "outputs", outputs_of(h) ^ flip, output_at);
}

static void add_limit(cJSON *to, const char *name, const fa_limit *l) {
  cJSON *one = cJSON_CreateObject();
  if (l->min > 0) cJSON_AddNumberToObject(one, "min", (double)l->min);
  if (l->max < INT64_MAX) cJSON_AddNumberToObject(one, "max", (double)l->max);
  if (l->multiple_of > 1) cJSON_AddNumberToObject(one, "multiple_of", (double)l->multiple_of);
  cJSON *among = l->n_among > 0 ? cJSON_AddArrayToObject(one, "among") : NULL;
  for (int i = 0; i < l->n_among; ++i) cJSON_AddItemToArray(among, cJSON_CreateNumber((double)l->among[i]));
  if (one && one->child)
    cJSON_AddItemToObject(to, name, one);
  else
    cJSON_Delete(one);
}

static void add_arithmetic(cJSON *to, const fa_hello *h) {
  cJSON *by_dtype = cJSON_AddObjectToObject(to, "arithmetic");
  for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
    const fa_declaration *d = &h->declaration[t];
    if (h->dtypes >> t & 1)
      cJSON_AddStringToObject(by_dtype, dtype_at(t), d->arithmetic_given ? d->arithmetic.name : "?");
  }
}

cJSON *fa_hello_claims(const fa_hello *h) {
  cJSON *o = cJSON_CreateObject();
  cJSON_AddStringToObject(o, "name", h->name);
  cJSON *claims = cJSON_AddObjectToObject(o, "claims");
  add_lists(claims, h, true);
  cJSON *limits = cJSON_AddObjectToObject(claims, "limits");
  for (int i = 0; i < FA_N_LIMITS; ++i) add_limit(limits, fa_limited_name(i), &h->limit[i]);
  add_arithmetic(claims, h);
  cJSON *rest = cJSON_AddObjectToObject(o, "not_claimed");
  add_lists(rest, h, false);
  if (h->asks) cJSON_AddBoolToObject(o, "asks", true);
  return o;
}
