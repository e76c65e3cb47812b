/* What a candidate that nobody trusts prints on its stderr: cut to size, without control characters, every line marked as
 * the candidate's own, so that it can pass for nobody else's word. */
#ifndef FA_GPU_WALL_PRINTED_H
#define FA_GPU_WALL_PRINTED_H

#include <stdbool.h>
#include <stddef.h>

/* Of one process; the rest is dropped. */
#define FA_WALL_PRINTED_BYTES ((size_t)64 << 10)

/* Zeroed but for the first two. */
typedef struct fa_wall_printed {
  int from;         /* its pipe; -1: there is none, or it was closed */
  const char *name; /* before each line */
  size_t n_bytes;   /* so far */
  size_t n_line;
  char line[1024]; /* what has no end yet, made printable */
} fa_wall_printed;

/* Copies what is there to our stderr; to be called when the pipe can be read. */
void fa_wall_printed_pass(fa_wall_printed *x);
/* Once nobody writes any more: copies all that is left. */
void fa_wall_printed_finish(fa_wall_printed *x);

#endif
