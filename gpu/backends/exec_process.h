/* The child of exec:CMD: a shell command that answers lines with lines.
 *
 * It runs under /bin/sh -c in its own process group, with a private folder for files. Between it and us is a
 * supervisor process, which kills the whole group and removes the folder as soon as we end, in whatever way:
 * a worker killed because its case takes too long leaves no process behind. */
#ifndef FA_GPU_BACKENDS_EXEC_PROCESS_H
#define FA_GPU_BACKENDS_EXEC_PROCESS_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed one is not running. */
typedef struct fa_exec_process {
  pid_t supervisor;       /* 0 = not running */
  int to, from, lifeline; /* the child's stdin and stdout; closing tells the supervisor that we died */
  char folder[512];       /* absolute, mode 0700 */
  char *bytes;            /* received but not yet read */
  size_t n_bytes, n_taken, capacity;
} fa_exec_process;

/* How long a child may take to end after its stdin was closed. */
#define FA_EXEC_GRACE_SECONDS 3
/* The longest line that it may answer. */
#define FA_EXEC_MAX_LINE ((size_t)1 << 20)

/* The folder is created in $FA_EXEC_DIR, else $TMPDIR, else /tmp. FA_ERR_INPUT: it cannot be created. */
fa_status fa_exec_start(fa_exec_process *x, const char *command, fa_error *err);

/* Sends text and a newline. False: the child no longer reads. */
bool fa_exec_send(fa_exec_process *x, const char *text);

typedef enum fa_exec_answer { FA_EXEC_LINE, FA_EXEC_ENDED, FA_EXEC_LATE, FA_EXEC_TOO_LONG } fa_exec_answer;
/* The next line without its newline, valid until the next call. seconds <= 0: no time limit. ENDED: its
 * stdout was closed; *line is the rest without a newline. */
fa_exec_answer fa_exec_receive(fa_exec_process *x, double seconds, char **line);

/* Stops the child. at_once: kills it; otherwise closes its stdin and waits FA_EXEC_GRACE_SECONDS. how (may be
 * NULL): "ended with status 3", "died of SIGSEGV (Segmentation fault)". */
void fa_exec_stop(fa_exec_process *x, bool at_once, char *how, size_t how_size);

#ifdef __cplusplus
}
#endif

#endif
