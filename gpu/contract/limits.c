#include "gpu/contract/limits.h"

#include <cjson/cJSON.h>
#include <stdio.h>

const char *fa_limited_name(int i) {
  static const char *const names[] = {"batch",    "heads_q",  "heads_kv",   "group",    "seqlen_q",
                                      "seqlen_k", "head_dim", "head_dim_v", "page_size"};
  return i >= 0 && i < FA_N_LIMITS ? names[i] : NULL;
}

const char *fa_limit_word(int i) {
  static const char *const names[] = {"min", "max", "multiple_of", "among"};
  return i >= 0 && i < 4 ? names[i] : NULL;
}

void fa_limits_init(fa_limit *limit) {
  for (int i = 0; i < FA_N_LIMITS; ++i) limit[i] = (fa_limit){.max = INT64_MAX, .multiple_of = 1};
}

/* ---- reading ---- */

static fa_status read_among(fa_keys k, fa_limit *out, fa_error *err) {
  const cJSON *array = fa_keys_get(k, "among"), *x;
  if (!array) return FA_OK;
  if (!cJSON_IsArray(array) || cJSON_GetArraySize(array) < 1 || cJSON_GetArraySize(array) > FA_MAX_AMONG)
    return fa_fail(err, FA_ERR_INPUT, "\"%samong\" must be an array of 1 .. %d sizes", k.prefix,
                   FA_MAX_AMONG);
  cJSON_ArrayForEach(x, array) {
    if (!cJSON_IsNumber(x) || x->valuedouble != (double)x->valueint || x->valueint < 0)
      return fa_fail(err, FA_ERR_INPUT, "\"%samong\" must hold integers of at least 0", k.prefix);
    out->among[out->n_among++] = x->valueint;
  }
  return FA_OK;
}

static fa_status read_limit(fa_keys k, fa_limit *out, fa_error *err) {
  bool given;
  fa_status status = fa_keys_check(k, fa_limit_word, err);
  if (status == FA_OK) status = fa_keys_count(k, "min", &out->min, &given, err);
  if (status == FA_OK) status = fa_keys_count(k, "max", &out->max, &given, err);
  if (status == FA_OK) status = fa_keys_count(k, "multiple_of", &out->multiple_of, &given, err);
  if (status == FA_OK) status = read_among(k, out, err);
  if (status == FA_OK && out->multiple_of < 1)
    status = fa_fail(err, FA_ERR_INPUT, "\"%smultiple_of\" must be at least 1", k.prefix);
  return status;
}

fa_status fa_limits_read(fa_keys hello, fa_limit *limit, fa_error *err) {
  const cJSON *all = NULL;
  fa_status status = fa_keys_object(hello, "limits", &all, err);
  const fa_keys limits = {all, "limits."};
  if (status == FA_OK) status = fa_keys_check(limits, fa_limited_name, err);
  for (int i = 0; status == FA_OK && i < FA_N_LIMITS; ++i) {
    char prefix[64];
    const cJSON *one = NULL;
    status = fa_keys_object(limits, fa_limited_name(i), &one, err);
    snprintf(prefix, sizeof prefix, "limits.%s.", fa_limited_name(i));
    if (status == FA_OK && one) status = read_limit((fa_keys){one, prefix}, &limit[i], err);
  }
  return status;
}

/* ---- asking ---- */

static int64_t size_of(const fa_problem *p, fa_limited what) {
  const int64_t sizes[] = {[FA_LIMIT_BATCH] = p->batch,
                           [FA_LIMIT_HEADS_Q] = p->heads_q,
                           [FA_LIMIT_HEADS_KV] = p->heads_kv,
                           [FA_LIMIT_GROUP] = p->heads_q / p->heads_kv,
                           [FA_LIMIT_SEQLEN_Q] = p->seqlen_q,
                           [FA_LIMIT_SEQLEN_K] = p->seqlen_k,
                           [FA_LIMIT_HEAD_DIM] = p->head_dim,
                           [FA_LIMIT_HEAD_DIM_V] = p->head_dim_v,
                           [FA_LIMIT_PAGE_SIZE] = p->kvcache.page_size};
  return sizes[what];
}

static bool is_among(const fa_limit *l, int64_t size) {
  for (int i = 0; i < l->n_among; ++i)
    if (l->among[i] == size) return true;
  return l->n_among == 0;
}

static void list_among(const fa_limit *l, char *out, size_t size) {
  size_t used = 0;
  for (int i = 0; i < l->n_among && used < size; ++i)
    used += (size_t)snprintf(out + used, size - used, "%s%lld", i ? ", " : "", (long long)l->among[i]);
}

bool fa_limits_allow(const fa_limit *limit, const fa_problem *p, char *why, size_t size) {
  for (int i = 0; i < FA_N_LIMITS; ++i) {
    const fa_limit *l = &limit[i];
    const long long x = size_of(p, (fa_limited)i);
    const char *name = fa_limited_name(i);
    char among[200];
    if (i == FA_LIMIT_PAGE_SIZE && x == 0) continue;
    if (x < l->min)
      snprintf(why, size, "%s %lld is less than %lld", name, x, (long long)l->min);
    else if (x > l->max)
      snprintf(why, size, "%s %lld is more than %lld", name, x, (long long)l->max);
    else if (x % l->multiple_of != 0)
      snprintf(why, size, "%s %lld is not a multiple of %lld", name, x, (long long)l->multiple_of);
    else if (!is_among(l, x))
      list_among(l, among, sizeof among), snprintf(why, size, "%s %lld is none of %s", name, x, among);
    else
      continue;
    return false;
  }
  return true;
}
