/* Sizes that a foreign kernel takes: a hello's "limits". */
#ifndef FA_GPU_CONTRACT_LIMITS_H
#define FA_GPU_CONTRACT_LIMITS_H

#include "cases/vocabulary/problem.h"
#include "gpu/contract/words.h"

#define FA_MAX_AMONG 64

typedef struct fa_limit {
  int64_t min, max, multiple_of; /* 0, INT64_MAX, 1: none */
  int n_among;                   /* 0: any size */
  int64_t among[FA_MAX_AMONG];
} fa_limit;

/* GROUP: query heads a KV head. PAGE_SIZE: only of caches with pages. */
typedef enum fa_limited {
  FA_LIMIT_BATCH,
  FA_LIMIT_HEADS_Q,
  FA_LIMIT_HEADS_KV,
  FA_LIMIT_GROUP,
  FA_LIMIT_SEQLEN_Q,
  FA_LIMIT_SEQLEN_K,
  FA_LIMIT_HEAD_DIM,
  FA_LIMIT_HEAD_DIM_V,
  FA_LIMIT_PAGE_SIZE,
  FA_N_LIMITS
} fa_limited;

const char *fa_limited_name(int i); /* "batch", "heads_q" ...; NULL out of range */
const char *fa_limit_word(int i);   /* "min", "max", "multiple_of", "among" */

void fa_limits_init(fa_limit *limit); /* FA_N_LIMITS that allow everything */
/* Reads the object "limits" of a hello. */
fa_status fa_limits_read(fa_keys hello, fa_limit *limit, fa_error *err);
/* False: a size of the problem is not allowed, and why says which: "head_dim 96 is none of 64, 128". */
bool fa_limits_allow(const fa_limit *limit, const fa_problem *p, char *why, size_t size);

#endif
