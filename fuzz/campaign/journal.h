/* The journal: a file of JSON lines that is only ever appended to, one line per result, each with one
 * write(), so that a program that is killed at any moment loses no result that it had. What a line says:
 * fuzz/campaign/resume.h. */
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
  bool lost; /* a line did not even fit into memory */
  bool told; /* the user knows that writing fails */
} fa_journal;

/* Opens path and locks it for as long as this process lives; children do not hold the lock. *text (the
 * caller's, NUL-terminated) is what stands in it, cut off after its last whole line, in the file too. With
 * keep = false such lines go to path.old first, and *text is "". FA_ERR_INPUT: another process has it. */
fa_status fa_journal_open(fa_journal *j, const char *path, bool keep, char **text, fa_error *err);

/* Writes the line and its end. When the disk is full the bytes wait here for the next call; a message on
 * stderr says so once. */
void fa_journal_append(fa_journal *j, const char *line);

/* Tries once more to write what waits. FA_ERR_IO: the file lacks lines. It stays a journal all the same:
 * what lacks is run again. The file goes away when remove_it and nothing is missing. */
fa_status fa_journal_close(fa_journal *j, bool remove_it, fa_error *err);

#endif
