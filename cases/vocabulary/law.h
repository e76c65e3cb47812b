/* Metamorphic laws: relations that must hold between two runs of a subject, whatever the right answer is. A
 * case with a law is judged by it instead of the reference. docs/reference/laws.md says what each compares, and how
 * exactly. */
#ifndef FA_CASES_VOCABULARY_LAW_H
#define FA_CASES_VOCABULARY_LAW_H

#include <stdbool.h>

typedef enum fa_law {
  FA_LAW_NONE, /* judged by the reference */
  FA_LAW_REPEAT,
  FA_LAW_KEY_PERMUTATION,
  FA_LAW_HEAD_PERMUTATION,
  FA_LAW_BATCH_ALONE,
  FA_LAW_VARLEN_SEPARATE,
  FA_LAW_CAUSAL_PREFIX,
  FA_LAW_MERGE_RANGES,
  FA_LAW_WINDOW_OPEN,
  FA_LAW_BIAS_SHIFT,
  FA_LAW_BIAS_MASK,
  FA_LAW_SCALE_POWER,
  FA_LAW_VALUE_POWER,
  FA_LAW_GRAD_POWER,
  FA_LAW_DROPOUT_NONE,
  FA_LAW_SPLIT_COUNT,
  FA_LAW_PAGE_PERMUTATION,
  FA_LAW_CACHE_CONTIGUOUS,
  FA_LAW_CACHE_APPENDED,
  FA_LAW_PART_PERMUTATION,
  FA_LAW_PART_EMPTY,
  FA_LAW_PART_NESTED,
  FA_LAW_SINK_NONE,
  FA_LAW_LIST_ORDER,
  FA_N_LAWS
} fa_law;

typedef struct fa_law_info {
  const char *name; /* as in the case JSON: "key-permutation" */
  const char *what; /* one line */
} fa_law_info;

const fa_law_info *fa_law_describe(fa_law law); /* asserts law < FA_N_LAWS; "none" for none */
bool fa_law_from_name(const char *name, fa_law *out);

#endif
