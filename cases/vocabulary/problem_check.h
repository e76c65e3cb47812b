/* Private to fa_problem_validate: what its parts share. Messages begin with the field's path in the case
 * JSON. */
#ifndef FA_CASES_VOCABULARY_PROBLEM_CHECK_H
#define FA_CASES_VOCABULARY_PROBLEM_CHECK_H

#include "cases/vocabulary/problem.h"

#define BAD(...) return fa_fail(err, FA_ERR_INPUT, __VA_ARGS__)
#define TRY(e)                                                                                               \
  do {                                                                                                       \
    fa_status try_status = (e);                                                                              \
    if (try_status != FA_OK) return try_status;                                                              \
  } while (0)

/* Checks that value is in lo .. hi. */
fa_status fa_check_range(const char *field, int64_t value, int64_t lo, int64_t hi, fa_error *err);
/* Checks that a is absent or has n elements in lo .. hi. */
fa_status fa_check_array(const char *field, const fa_int32_array *a, int64_t n, int64_t lo, int64_t hi,
                         fa_error *err);
fa_status fa_check_block_sparse(const fa_problem *p, fa_error *err);
fa_status fa_check_captures(const fa_problem *p, fa_error *err);
fa_status fa_check_topk(const fa_problem *p, fa_error *err);
fa_status fa_check_quantized(const fa_problem *p, fa_error *err);
fa_status fa_check_merge(const fa_problem *p, fa_error *err);

#endif
