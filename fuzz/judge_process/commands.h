/* What a machine shall do, as a list: made by a client, done in the judge's process. Between one answer and the next there
 * is one list, however many kernels it launches: uploads and what is cleared, launches, what comes back. Of a call whose inputs come
 * by turns there are uploads between launches, too: such a list is done alone, in its order. */
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

/* A command that was read: all that decides about memory of this process, which nobody else can change any more. */
typedef struct fa_judge_step {
  fa_judge_command command;
  size_t job;    /* LAUNCH: where in the list */
  int64_t items; /* LAUNCH: of the job */
  int strand;
  bool beside;
} fa_judge_step;

typedef struct fa_judge_steps {
  fa_judge_step *step;
  int n, capacity;
  int n_before, n_launches; /* what comes before the launches, and they */
  bool in_order;            /* there are uploads between the launches */
} fa_judge_steps;

/* What a list may touch. */
typedef struct fa_judge_bounds {
  const char *memory; /* of the machine, the call's */
  size_t memory_bytes;
  size_t used; /* of the shared memory */
} fa_judge_bounds;

/* Reads all `bytes` of a list. FA_ERR_DEVICE: it is no list. */
fa_status fa_judge_steps_read(const char *list, size_t bytes, const fa_judge_bounds *bounds,
                              fa_judge_steps *out, fa_error *err);

#endif
