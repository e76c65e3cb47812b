/* Files that appear whole or not at all. */
#ifndef FA_CASES_BASE_ATOMIC_FILE_H
#define FA_CASES_BASE_ATOMIC_FILE_H

#include "cases/base/status.h"

#include <stdio.h>

/* A file that is being written, beside the place where it is to appear. */
typedef struct fa_new_file {
  FILE *file; /* to write to */
  const char *path;
  char *target, *temporary;
} fa_new_file;

/* path outlives it. If a link stands there, the file it leads to will be replaced, not the link. FA_ERR_IO
 * also for a device or a pipe, which a file would take the place of. */
fa_status fa_new_file_open(fa_new_file *f, const char *path, fa_error *err);
/* status is that of writing: FA_OK and the file is synced and renamed over what was there; otherwise, and if
 * that fails, nothing is left behind and an old file stays as it was. Returns status, or why that failed. */
fa_status fa_new_file_close(fa_new_file *f, fa_status status, fa_error *err);

/* All that in one. */
fa_status fa_file_write_atomic(const char *path, const char *bytes, size_t n_bytes, fa_error *err);

/* FA_ERR_INPUT when a file could not be created at path, so that this is known before hours of work. */
fa_status fa_file_check_writable(const char *path, fa_error *err);

/* The whole file, NUL-terminated, malloc'd. path "-" is stdin. */
fa_status fa_file_read(const char *path, char **bytes, size_t *n_bytes, fa_error *err);

#endif
