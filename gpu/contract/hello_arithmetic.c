/* The key "arithmetic" of a hello and of an answer. */
#include "gpu/contract/hello.h"

#include <cjson/cJSON.h>
#include <string.h>

/* The keys of version 1; other fields came later. */
static const char *old_key(int i) {
  static const char *const names[] = {"name", "block_n", "max_splits", "dq_atomic", "gqa_partials_rounded"};
  return i < 5 ? names[i] : NULL;
}

static bool is_dtype(const char *key) {
  fa_dtype dtype;
  return fa_dtype_from_name(key, &dtype) && (int)dtype < FA_HELLO_DTYPES;
}

/* In version 1, block_n and max_splits of 0 meant: as the named set has them. */
static bool means_nothing(const cJSON *x, int version) {
  return version == 1 && cJSON_IsNumber(x) && x->valuedouble == 0;
}

static fa_status set_name(const cJSON *name, fa_dtype dtype, fa_arithmetic *out, fa_error *err) {
  char all[700] = "";
  if (!name) return FA_OK;
  if (cJSON_IsString(name) && fa_arithmetic_named(name->valuestring, dtype, out)) return FA_OK;
  fa_words_join(fa_arithmetic_name, all, sizeof all);
  return fa_fail(err, FA_ERR_INPUT, "\"arithmetic.name\": \"%.40s\" is none of %s",
                 cJSON_IsString(name) ? name->valuestring : "?", all);
}

/* The set's name first, whatever the order of the keys, then the fields that differ. */
static fa_status set_fields(const cJSON *object, int version, fa_dtype dtype, fa_arithmetic *out, bool *given,
                            fa_error *err) {
  const cJSON *x;
  fa_status status = set_name(cJSON_GetObjectItemCaseSensitive(object, "name"), dtype, out, err);
  cJSON_ArrayForEach(x, object) {
    if (status != FA_OK) return status;
    if (is_dtype(x->string)) continue;
    *given = true;
    if (strcmp(x->string, "name") == 0 || means_nothing(x, version)) continue;
    const fa_arithmetic_value value = {.word = cJSON_GetStringValue(x),
                                       .is_number = cJSON_IsNumber(x),
                                       .is_flag = cJSON_IsBool(x),
                                       .flag = cJSON_IsTrue(x),
                                       .number = cJSON_IsNumber(x) ? x->valuedouble : 0};
    status = fa_arithmetic_set(out, x->string, &value, err);
    if (status != FA_OK) fa_error_prefix(err, "\"arithmetic\"");
  }
  return status;
}

fa_status fa_hello_read_arithmetic(const cJSON *object, int version, fa_dtype dtype, fa_arithmetic *out,
                                   bool *given, fa_error *err) {
  const fa_keys k = {object, ""};
  const cJSON *all = NULL, *own = NULL;
  fa_status status = fa_keys_object(k, "arithmetic", &all, err);
  if (status == FA_OK && version == 1) status = fa_keys_check((fa_keys){all, "arithmetic."}, old_key, err);
  if (status == FA_OK) status = set_fields(all, version, dtype, out, given, err);
  if (status == FA_OK)
    status = fa_keys_object((fa_keys){all, "arithmetic."}, fa_dtype_name(dtype), &own, err);
  if (status == FA_OK) status = set_fields(own, version, dtype, out, given, err);
  return status;
}
