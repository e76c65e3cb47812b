/* A launch of one kernel for several jobs, of one call or of several: they lie in the machine's memory, and blocks of threads
 * are numbered through all of them. */
#ifndef FA_REF_CUDA_BATCH_H
#define FA_REF_CUDA_BATCH_H

#include <stdint.h>

enum { FA_JUDGE_MOST_TASKS = 64 };

typedef struct fa_judge_batch {
  int64_t at[FA_JUDGE_MOST_TASKS];     /* where a job lies, in bytes from the first */
  uint32_t first[FA_JUDGE_MOST_TASKS]; /* blocks of the jobs before it */
  int n;
} fa_judge_batch;

#endif
