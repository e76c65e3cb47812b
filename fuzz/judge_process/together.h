/* Several calls' lists done together: of one kernel for all of them, as far as they come to it together, there is one launch. */
#ifndef FA_FUZZ_JUDGE_PROCESS_TOGETHER_H
#define FA_FUZZ_JUDGE_PROCESS_TOGETHER_H

#include "fuzz/judge_process/commands.h"

#include <semaphore.h>

typedef struct fa_judge_call {
  const char *list; /* in the shared memory */
  size_t bytes;
  char *there; /* room for it in the machine's memory, where kernels read their jobs */
  char *shared;
  fa_judge_steps steps;
  int next[2];                  /* of each strand */
  struct fa_judge_call *behind; /* of those that wait */
  sem_t done;
  fa_status status;
  fa_error err;
} fa_judge_call;

enum { FA_JUDGE_MOST_TOGETHER = 16 };

/* Returns when all is there that they want. Not FA_OK: the machine failed, and nothing that it says is to be relied on. */
fa_status fa_judge_run_together(const fa_judge_machine *m, fa_judge_call *const *calls, int n, fa_error *err);
/* One, which may have uploads between its launches. */
fa_status fa_judge_run_alone(const fa_judge_machine *m, fa_judge_call *call, fa_error *err);

#endif
