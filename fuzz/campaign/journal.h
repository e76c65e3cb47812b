/* The journal: an append-only file of JSON lines, one per result, each written with one write(), so that a
 * program killed at any moment loses no result. Content of the lines: fuzz/campaign/resume.h. */
#ifndef FA_FUZZ_CAMPAIGN_JOURNAL_H
#define FA_FUZZ_CAMPAIGN_JOURNAL_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fa_journal {
  char *path; /* owned; NULL = there is no journal */
  int fd;
  char *waiting; /* owned: bytes that could not be written yet */
  size_t n_waiting, capacity;
  bool lost; /* out of memory for a line */
  bool told; /* the user was told that writing fails */
} fa_journal;

/* Opens path and locks it for the life of this process; children do not hold the lock. *text (owned by the
 * caller, NUL-terminated) is its content; an incomplete last line is cut off, in the file too. With keep =
 * false the lines are first moved to path.old, and *text is "". FA_ERR_INPUT: another process has it. */
fa_status fa_journal_open(fa_journal *j, const char *path, bool keep, char **text, fa_error *err);

/* Writes the line and a newline. If the disk is full, the bytes wait for the next call, and a message on
 * stderr says so once. */
void fa_journal_append(fa_journal *j, const char *line);

/* Tries once more to write what waits. FA_ERR_IO: the file lacks lines; it is still a valid journal, and the
 * missing cases are run again. Removes the file if remove_it and nothing is missing. */
fa_status fa_journal_close(fa_journal *j, bool remove_it, fa_error *err);

#endif
