/* Private to fuzz/judge_process: a machine that is in the judge's process. */
#ifndef FA_FUZZ_JUDGE_PROCESS_CLIENT_H
#define FA_FUZZ_JUDGE_PROCESS_CLIENT_H

#include "fuzz/judge_process/commands.h"
#include "fuzz/judge_process/shared.h"

#include <sys/types.h>

typedef struct fa_judge_client {
  fa_judge_machine machine;
  int socket;     /* -1: not connected */
  bool is_silent; /* closed, because nobody answered */
  double patience_s;
  pid_t server;
  fa_judge_shared shared;
  size_t used; /* of it: what is staged */
  char *memory;
  size_t kept_bytes; /* of the machine's memory, that is there and stays */
  fa_judge_commands list;
  uint64_t nonce;
} fa_judge_client;

#define FA_JUDGE_ENDED_TEXT "the judge's process ended"
#define FA_JUDGE_SILENT_TEXT "the judge's process did not answer"

/* From how many pairs a launch takes large tiles, by $FA_JUDGE_WIDE_FROM, for tests of these with small calls; 0: it is not set.
 * FA_ERR_INPUT: it is no such number. */
fa_status fa_judge_read_wide_from(int64_t *pairs, fa_error *err);

/* *is_silent: it failed because nobody answered. */
fa_status fa_judge_client_connect(fa_judge_client *c, int door, double patience_s, bool *is_silent,
                                  fa_error *err);
/* False: it has to be connected anew. */
bool fa_judge_client_is_there(const fa_judge_client *c);
void fa_judge_client_close(fa_judge_client *c);

#endif
