/* What a candidate that nobody trusts prints on its stderr: cut to size, without control characters, every line marked as
 * the candidate's own, so that it can pass for nobody else's word. */
#ifndef FA_GPU_BACKENDS_EXEC_STDERR_H
#define FA_GPU_BACKENDS_EXEC_STDERR_H

#include <stdbool.h>
#include <stddef.h>

/* Of one process; the rest is dropped. */
#define FA_EXEC_STDERR_BYTES ((size_t)64 << 10)

/* Zeroed but for the first two. */
typedef struct fa_exec_stderr {
  int from;         /* its pipe; -1: there is none, or it was closed */
  const char *name; /* before each line */
  size_t n_bytes;   /* so far */
  size_t n_line;
  char line[1024]; /* what has no end yet, made printable */
} fa_exec_stderr;

/* Copies what is there to our stderr; to be called when the pipe can be read. */
void fa_exec_stderr_pass(fa_exec_stderr *x);
/* Once nobody writes any more: copies all that is left. */
void fa_exec_stderr_finish(fa_exec_stderr *x);

#endif
