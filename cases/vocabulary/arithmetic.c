/* A stand-in: the sets that profiles have names for, and the fields of version 1 of the protocol. */
#include "cases/vocabulary/arithmetic.h"

#include <string.h>

static const char *const names[] = {"mma-hopper", "mma-ampere", "mma-volta",      "simt-f32",
                                    "3xtf32",     "recorded",   "recorded-memeff"};
enum { N_NAMES = sizeof names / sizeof *names };

const char *fa_arithmetic_name(int i) {
  return i >= 0 && i < N_NAMES ? names[i] : NULL;
}

bool fa_arithmetic_named(const char *name, fa_dtype dtype, fa_arithmetic *out) {
  for (int i = 0; i < N_NAMES; ++i) {
    if (strcmp(names[i], name) != 0) continue;
    const fa_profile p = fa_profile_get(name, dtype);
    *out = (fa_arithmetic){.name = names[i],
                           .block_n = p.block_n,
                           .max_splits = p.max_splits,
                           .dq_atomic = p.dq_atomic,
                           .gqa_partials_rounded = p.gqa_partials_in_io};
    return true;
  }
  return false;
}

fa_status fa_arithmetic_set(fa_arithmetic *a, const char *key, const fa_arithmetic_value *value,
                            fa_error *err) {
  const bool count = value->is_number && value->number >= 1 && value->number <= 1e6;
  if (strcmp(key, "block_n") == 0 && count)
    a->block_n = (int)value->number;
  else if (strcmp(key, "max_splits") == 0 && count)
    a->max_splits = (int)value->number;
  else if (strcmp(key, "dq_atomic") == 0 && value->is_flag)
    a->dq_atomic = value->flag;
  else if (strcmp(key, "gqa_partials_rounded") == 0 && value->is_flag)
    a->gqa_partials_rounded = value->flag;
  else
    return fa_fail(err, FA_ERR_INPUT, "\"%.40s\": unknown, or not a value that it may have", key);
  return FA_OK;
}

fa_profile fa_arithmetic_profile(const fa_arithmetic *a, fa_dtype dtype) {
  fa_profile p = fa_profile_get(a->name, dtype);
  p.block_n = a->block_n;
  p.max_splits = a->max_splits;
  p.dq_atomic = a->dq_atomic;
  p.gqa_partials_in_io = a->gqa_partials_rounded;
  return p;
}
