/* Lines to and from another process, over any pair of descriptors. */
#ifndef FA_GPU_CHILD_LINES_H
#define FA_GPU_CHILD_LINES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, with its descriptors set. */
typedef struct fa_exec_lines {
  int to, from; /* to: a socket, because writing to a pipe without a reader raises SIGPIPE */
  char *bytes;  /* received but not yet read */
  size_t n_bytes, n_taken, capacity;
} fa_exec_lines;

/* The longest line that may be answered. */
#define FA_EXEC_MAX_LINE ((size_t)1 << 20)

/* Sends text and a newline. False: the other side no longer reads. */
bool fa_exec_send(fa_exec_lines *x, const char *text);

typedef enum fa_exec_answer { FA_EXEC_LINE, FA_EXEC_ENDED, FA_EXEC_LATE, FA_EXEC_TOO_LONG } fa_exec_answer;
/* The next line without its newline, valid until the next call. seconds <= 0: no time limit. ENDED: the other side
 * was closed; *line is the rest without a newline. */
fa_exec_answer fa_exec_receive(fa_exec_lines *x, double seconds, char **line);

/* Frees what was received. The descriptors are the caller's. */
void fa_exec_lines_free(fa_exec_lines *x);

/* Seconds of a clock that never goes back. */
double fa_exec_now(void);

#endif
