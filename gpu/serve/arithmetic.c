/* A backend's profile in the words of docs/reference/arithmetic.md. */
#include "cases/arithmetic/fields.h"
#include "gpu/serve/parts.h"

#include <cjson/cJSON.h>

/* What a profile keeps as it is of the fields that it was made from. */
static void add_fields(cJSON *object, const fa_profile *p) {
  const struct {
    const char *key;
    int value;
  } counts[] = {{"block_n", p->block_n},
                {"block_m", p->block_m},
                {"max_splits", p->max_splits},
                {"mma_block", p->mma_block},
                {"mma_extra_bits", p->mma_extra_bits}},
    flags[] = {{"max_lags", p->max_rounded},          {"exp_scaled", p->exp_scaled},
               {"fast_functions", p->fast_functions}, {"gqa_partials_rounded", p->gqa_partials_in_io},
               {"dq_atomic", p->dq_atomic},           {"dkv_atomic", p->dkv_atomic},
               {"dbias_atomic", p->dbias_atomic},     {"dbuffer_atomic", p->dbuffer_atomic},
               {"dsinks_atomic", p->dsinks_atomic}};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i)
    if (counts[i].value != 0 || i > 2) cJSON_AddNumberToObject(object, counts[i].key, counts[i].value);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; ++i)
    cJSON_AddBoolToObject(object, flags[i].key, flags[i].value);
}

cJSON *fa_serve_arithmetic(const fa_profile *profile, fa_dtype dtype) {
  cJSON *object = cJSON_CreateObject();
  fa_arithmetic set;
  const bool known = profile->name && fa_arithmetic_named(profile->name, dtype, &set);
  cJSON_AddStringToObject(object, "name", known ? profile->name : "recorded");
  add_fields(object, profile);
  return object;
}
