/* Private to report/merge: a report's text, read piece by piece. */
#ifndef FA_REPORT_MERGE_INPUT_H
#define FA_REPORT_MERGE_INPUT_H

#include "report/merge/streamed.h"

#include <sys/stat.h>

/* A report to read. Regular files are read again when their entries are needed; of anything else, such as stdin, the
 * text is held. */
typedef struct fa_input {
  const char *path;
  char *text;       /* owned, NULL: the file is read */
  int64_t n;        /* bytes */
  struct stat seen; /* the file as it was at first */
} fa_input;

fa_status fa_input_open(fa_input *in, const fa_merge_source *source, fa_error *err);
void fa_input_close(fa_input *in);

/* A piece of one input at a time. */
typedef struct fa_view {
  const fa_input *in;
  int fd; /* of in, if it is a file; -1: none */
  char *buffer;
  int64_t start, n, capacity; /* where in the input the buffer's text is from */
} fa_view;

fa_view fa_view_make(void);
void fa_view_free(fa_view *w);
/* The n bytes at `offset`, valid until the next call; what lies behind them is read with them, since it is probably
 * asked for next. FA_ERR_IO: the file is gone, cannot be read or is another one now. */
fa_status fa_view_get(fa_view *w, const fa_input *in, int64_t offset, int64_t n, const char **out,
                      fa_error *err);

/* How many bytes from `offset` on the last call has in memory. */
int64_t fa_view_has(const fa_view *w, int64_t offset);

#endif
