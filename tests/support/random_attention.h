/* Small random cases for testing the reference: every feature is frequent, every size is small, except that
 * some cases cross the reference's own block edges. Independent of the program's generator. */
#ifndef FA_TESTS_SUPPORT_RANDOM_ATTENTION_H
#define FA_TESTS_SUPPORT_RANDOM_ATTENTION_H

#include "cases/recipe/case.h"

/* *out is valid and owned by the caller. A pure function of (seed, index). */
void random_attention(uint64_t seed, uint64_t index, fa_case *out);

/* The features of a case: bit n of the result stands for random_feature_names[n]. */
#define RANDOM_MAX_FEATURES 64
extern const char *const random_feature_names[RANDOM_MAX_FEATURES]; /* ends with NULL */
uint64_t random_features(const fa_case *c);

#endif
