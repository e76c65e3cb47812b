#include "gpu/contract/words.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const cJSON *fa_keys_get(fa_keys k, const char *key) {
  return cJSON_GetObjectItemCaseSensitive(k.object, key);
}

void fa_words_join(fa_word_of word, char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; word(i) && used < size; ++i)
    used += (size_t)snprintf(out + used, size - used, "%s%s", i ? ", " : "", word(i));
}

int fa_words_find(fa_word_of word, const char *text) {
  for (int i = 0; text && word(i); ++i)
    if (strcmp(word(i), text) == 0) return i;
  return -1;
}

fa_status fa_keys_check(fa_keys k, fa_word_of word, fa_error *err) {
  char all[700];
  const cJSON *x;
  cJSON_ArrayForEach(x, k.object) {
    if (fa_words_find(word, x->string) >= 0) continue;
    fa_words_join(word, all, sizeof all);
    return fa_fail(err, FA_ERR_INPUT, "\"%s%.40s\" is an unknown key; there are %s", k.prefix, x->string,
                   all);
  }
  return FA_OK;
}

/* Sets *out to the place of a word. */
static fa_status place_of(fa_keys k, const char *key, const cJSON *text, fa_word_of word, int *out,
                          fa_error *err) {
  char all[900];
  *out = fa_words_find(word, cJSON_GetStringValue(text));
  if (*out >= 0) return FA_OK;
  fa_words_join(word, all, sizeof all);
  return fa_fail(err, FA_ERR_INPUT, "\"%s%s\": \"%.40s\" is none of %s", k.prefix, key,
                 cJSON_IsString(text) ? text->valuestring : "?", all);
}

fa_status fa_keys_word(fa_keys k, const char *key, fa_word_of word, int *out, bool *given, fa_error *err) {
  const cJSON *text = fa_keys_get(k, key);
  int place = 0;
  if (!text) return FA_OK;
  const fa_status status = place_of(k, key, text, word, &place, err);
  if (status != FA_OK) return status;
  *out = place;
  *given = true;
  return FA_OK;
}

fa_status fa_keys_words(fa_keys k, const char *key, fa_word_of word, uint64_t *out, bool *given,
                        fa_error *err) {
  const cJSON *array = fa_keys_get(k, key), *text;
  uint64_t bits = 0;
  if (!array) return FA_OK;
  if (!cJSON_IsArray(array))
    return fa_fail(err, FA_ERR_INPUT, "\"%s%s\" must be an array of words", k.prefix, key);
  cJSON_ArrayForEach(text, array) {
    int place = 0;
    const fa_status status = place_of(k, key, text, word, &place, err);
    if (status != FA_OK) return status;
    bits |= (uint64_t)1 << place;
  }
  *out = bits;
  *given = true;
  return FA_OK;
}

fa_status fa_keys_flag(fa_keys k, const char *key, bool *out, bool *given, fa_error *err) {
  const cJSON *flag = fa_keys_get(k, key);
  if (!flag) return FA_OK;
  if (!cJSON_IsBool(flag)) return fa_fail(err, FA_ERR_INPUT, "\"%s%s\" must be true or false", k.prefix, key);
  *out = cJSON_IsTrue(flag);
  *given = true;
  return FA_OK;
}

fa_status fa_keys_count(fa_keys k, const char *key, int64_t *out, bool *given, fa_error *err) {
  const cJSON *number = fa_keys_get(k, key);
  if (!number) return FA_OK;
  const double x = cJSON_IsNumber(number) ? number->valuedouble : -1;
  if (!(x >= 0 && x <= INT32_MAX && x == floor(x)))
    return fa_fail(err, FA_ERR_INPUT, "\"%s%s\" must be an integer of at least 0", k.prefix, key);
  *out = (int64_t)x;
  *given = true;
  return FA_OK;
}

fa_status fa_keys_text(fa_keys k, const char *key, bool needed, char *out, size_t size, fa_error *err) {
  const cJSON *text = fa_keys_get(k, key);
  if (text ? !cJSON_IsString(text) : needed)
    return fa_fail(err, FA_ERR_INPUT, text ? "\"%s%s\" must be a string" : "\"%s%s\" is missing", k.prefix,
                   key);
  if (text) snprintf(out, size, "%s", text->valuestring);
  return FA_OK;
}

fa_status fa_keys_object(fa_keys k, const char *key, const cJSON **out, fa_error *err) {
  *out = fa_keys_get(k, key);
  if (*out && !cJSON_IsObject(*out))
    return fa_fail(err, FA_ERR_INPUT, "\"%s%s\" must be an object", k.prefix, key);
  return FA_OK;
}
