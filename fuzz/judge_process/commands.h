/* What a machine shall do, as a list: made by a client, done in the judge's process. Between one answer and the next there
 * is one list, however many kernels it launches. */
#ifndef FA_FUZZ_JUDGE_PROCESS_COMMANDS_H
#define FA_FUZZ_JUDGE_PROCESS_COMMANDS_H

#include "ref/cuda/machine.h"

typedef enum fa_judge_what {
  FA_JUDGE_UPLOAD,
  FA_JUDGE_CLEAR,
  FA_JUDGE_LAUNCH,
  FA_JUDGE_DOWNLOAD
} fa_judge_what;

typedef struct fa_judge_command {
  fa_judge_what what;
  fa_judge_kernel kernel; /* LAUNCH: its job follows */
  char *machine;          /* memory of the machine */
  size_t shared, bytes;   /* where in the shared memory, and how much */
} fa_judge_command;

typedef struct fa_judge_commands {
  char *bytes;
  size_t used, capacity;
} fa_judge_commands;

/* job: with LAUNCH. */
fa_status fa_judge_commands_add(fa_judge_commands *list, const fa_judge_command *one, const fa_judge_job *job,
                                fa_error *err);
/* Does all `bytes` of a list. shared: the memory, of which `used` bytes count. FA_ERR_DEVICE also where it is no list. */
fa_status fa_judge_commands_run(const fa_judge_machine *m, const char *list, size_t bytes, char *shared,
                                size_t used, fa_error *err);

#endif
