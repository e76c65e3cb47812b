/* Cases small enough to build in a test, and their elements by logical index. */
#ifndef FA_TESTS_SUPPORT_BUILT_CASE_H
#define FA_TESTS_SUPPORT_BUILT_CASE_H

#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "cases/tensors/guard.h"
#include "tests/support/check.h"

static inline fa_tensors build(const fa_case *c) {
  fa_tensors set;
  fa_error err = {""};
  const fa_status status = fa_case_build(c, &set, &err);
  if (status != FA_OK) fprintf(stderr, "%s\n", err.text);
  REQUIRE(status == FA_OK);
  char where[512];
  CHECK_MSG(fa_tensors_guards_intact(&set, where, sizeof where), "%s", where);
  return set;
}

static inline void set_array(fa_int32_array *a, const int32_t *v, int64_t n) {
  REQUIRE(fa_int32_array_set(a, v, n) == FA_OK);
}

#endif
