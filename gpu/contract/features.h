/* What a problem may ask for beyond plain attention: the words of a hello's "features". */
#ifndef FA_GPU_CONTRACT_FEATURES_H
#define FA_GPU_CONTRACT_FEATURES_H

#include "cases/vocabulary/problem.h"

/* What a hello of version 1 says about a feature. NAMED: it is in its list or, without a list, it has it. IMPLIED:
 * part of other words, so that every such child has it. LATER: made after it, so it has it only if its list says so. LISTED: made after
 * version 2 too, so that a hello of any version has it only if its list says so. */
typedef enum fa_feature_age {
  FA_FEATURE_NAMED,
  FA_FEATURE_IMPLIED,
  FA_FEATURE_LATER,
  FA_FEATURE_LISTED
} fa_feature_age;

typedef struct fa_feature {
  const char *name;
  bool (*is_in)(const fa_problem *p);
  fa_feature_age age;
  const char *what; /* in a few words, for the documentation and `list` */
} fa_feature;

/* The i-th feature, up to 64; NULL behind the last. */
const fa_feature *fa_feature_at(int i);
const char *fa_feature_name(int i); /* NULL behind the last */

#endif
