/* A case from its text, with its tensors. */
#ifndef FA_TESTS_HELD_CASE_OF_H
#define FA_TESTS_HELD_CASE_OF_H

#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "tests/support/check.h"

static inline fa_case case_of(const char *text, fa_tensors *in) {
  fa_case c;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(text, &c, &err) == FA_OK, "%s", err.text);
  REQUIRE(fa_case_build(&c, in, &err) == FA_OK);
  return c;
}

#endif
