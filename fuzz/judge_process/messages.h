/* What is said between the judge's process and those that ask it. Every message is one datagram of a socket pair of their
 * own; a client's first, through the door that all share, carries its end for the server and the memory that both have.
 * Both sides are the same program, so that structs travel as they are. */
#ifndef FA_FUZZ_JUDGE_PROCESS_MESSAGES_H
#define FA_FUZZ_JUDGE_PROCESS_MESSAGES_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef enum fa_judge_question { FA_JUDGE_HELLO, FA_JUDGE_RESERVE, FA_JUDGE_RUN } fa_judge_question;

typedef struct fa_judge_ask {
  uint64_t nonce; /* the answer has it too */
  fa_judge_question what;
  size_t bytes;         /* RESERVE: of the machine's memory */
  bool forget;          /* RESERVE: the shared memory will be given back, then */
  size_t used;          /* RUN: of the shared memory */
  size_t from, n_bytes; /* RUN: where in it the commands are */
} fa_judge_ask;

typedef struct fa_judge_answer {
  uint64_t nonce;
  fa_status status;
  fa_error err;
  pid_t server;      /* HELLO */
  size_t most_bytes; /* HELLO: as the machine has it */
  char *memory;      /* RESERVE: the machine's */
  size_t kept_bytes; /* RESERVE: of it, that need not be asked for again */
} fa_judge_answer;

/* fds[2] go with it. False: nobody is there any more. */
bool fa_judge_send(int socket, const void *message, size_t bytes, const int *fds);
/* Waits for patience_s until there is something to receive; < 0: as long as it takes. */
bool fa_judge_hears(int socket, double patience_s);
typedef enum fa_judge_heard { FA_JUDGE_HEARD, FA_JUDGE_NOTHING, FA_JUDGE_ENDED } fa_judge_heard;
/* Waits as fa_judge_hears. FA_JUDGE_ENDED: nobody is there, or it is no message of that size.
 * fds NULL: none are expected; else -1 where none came. */
fa_judge_heard fa_judge_receive(int socket, void *message, size_t bytes, int *fds, double patience_s);

#endif
