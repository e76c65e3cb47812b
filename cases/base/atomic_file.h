/* Atomic file writes: a file appears whole or not at all. */
#ifndef FA_CASES_BASE_ATOMIC_FILE_H
#define FA_CASES_BASE_ATOMIC_FILE_H

#include "cases/base/status.h"

#include <stdio.h>

/* A file being written next to its final place. */
typedef struct fa_new_file {
  FILE *file; /* write to this */
  const char *path;
  char *target, *temporary;
} fa_new_file;

/* The string path must outlive f. If path is a link, the file that it points to is replaced, not the link.
 * FA_ERR_IO also for a device or a pipe, because the new file would replace it. */
fa_status fa_new_file_open(fa_new_file *f, const char *path, fa_error *err);
/* status is the result of writing. On FA_OK the file is synced and renamed over the old one. Otherwise, or if
 * that fails, nothing is left behind and the old file stays as it was. Returns status, or the error of
 * syncing and renaming. */
fa_status fa_new_file_close(fa_new_file *f, fa_status status, fa_error *err);

/* Opens, writes and closes in one call. */
fa_status fa_file_write_atomic(const char *path, const char *bytes, size_t n_bytes, fa_error *err);

/* FA_ERR_INPUT when no file could be created at path, so that the user learns it before hours of work. */
fa_status fa_file_check_writable(const char *path, fa_error *err);

/* Reads the whole file into malloc'd memory, NUL-terminated. path "-" is stdin. */
fa_status fa_file_read(const char *path, char **bytes, size_t *n_bytes, fa_error *err);

#endif
