/* Profiles by name, and what a kernel's plan adds to one. */
#include "cases/arithmetic/profile.h"

#include "cases/arithmetic/fields.h"

bool fa_profile_exists(const char *name) {
  fa_arithmetic unused;
  return fa_arithmetic_named(name, FA_F32, &unused);
}

fa_profile fa_profile_get(const char *name, fa_dtype dtype) {
  fa_arithmetic a;
  const bool exists = fa_arithmetic_named(name, dtype, &a);
  FA_ASSERT(exists);
  return fa_arithmetic_profile(&a, dtype);
}

void fa_profile_add_keys_in_memory(fa_profile *p, int block_m) {
  p->dkv_atomic = true;
  p->floor_dkv = 0x1p-126;
  p->block_m = block_m;
}

void fa_profile_add_bias_in_memory(fa_profile *p) {
  p->dbias_atomic = true;
  p->floor_dbias = 0x1p-126;
}
