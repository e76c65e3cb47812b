/* Memory that a client and the judge's process both have: what is uploaded, the commands, and what comes back. As large as
 * anybody may ever need; pages exist once they are written. */
#ifndef FA_FUZZ_JUDGE_PROCESS_SHARED_H
#define FA_FUZZ_JUDGE_PROCESS_SHARED_H

#include "cases/base/status.h"

#include <stddef.h>

#define FA_JUDGE_SHARED_BYTES ((size_t)64 << 30)

typedef struct fa_judge_shared {
  int fd;
  char *memory;
} fa_judge_shared;

fa_status fa_judge_shared_make(fa_judge_shared *s, fa_error *err);
/* That of another process. Takes fd over. */
fa_status fa_judge_shared_open(int fd, fa_judge_shared *s, fa_error *err);
/* The pages are given back, and what was in them is gone. */
void fa_judge_shared_forget(fa_judge_shared *s, size_t bytes);
void fa_judge_shared_close(fa_judge_shared *s);

#endif
