/* Files that appear whole or not at all. */
#ifndef FA_CASES_ATOMIC_FILE_H
#define FA_CASES_ATOMIC_FILE_H

#include "cases/status.h"

#include <stddef.h>

/* Writes to a temporary file in the same folder, syncs it, renames it over path. Nothing is left behind on
 * failure, and an old file at path stays as it was. */
fa_status fa_file_write_atomic(const char *path, const char *bytes, size_t n_bytes, fa_error *err);

/* FA_ERR_INPUT when a file could not be created at path, so that this is known before hours of work. */
fa_status fa_file_check_writable(const char *path, fa_error *err);

/* The whole file, NUL-terminated, malloc'd. path "-" is stdin. */
fa_status fa_file_read(const char *path, char **bytes, size_t *n_bytes, fa_error *err);

#endif
