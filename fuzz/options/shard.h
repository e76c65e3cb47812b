/* The part of the cases that this process runs. Case i belongs to shard i % total, so that a case does not
 * change with the number of shards. */
#ifndef FA_FUZZ_OPTIONS_SHARD_H
#define FA_FUZZ_OPTIONS_SHARD_H

#include "cases/base/status.h"

#include <stdint.h>

typedef struct fa_shard {
  int64_t index, total; /* 0 <= index < total; 0, 1 = everything */
  const char *source;   /* where it came from: "--shard", "SLURM_ARRAY_TASK_ID", ...; NULL = nowhere */
} fa_shard;

/* option: the text of --shard, "I/N", or NULL: the environment then decides (FA_SHARD_INDEX/_TOTAL,
 * TEST_SHARD_INDEX/TEST_TOTAL_SHARDS, GTEST_SHARD_INDEX/GTEST_TOTAL_SHARDS, Slurm's array variables, in this
 * order). FA_ERR_INPUT names what is wrong. */
fa_status fa_shard_read(const char *option, fa_shard *out, fa_error *err);

#endif
