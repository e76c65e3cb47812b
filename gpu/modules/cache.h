/* Compiled kernels on disk, kept from one process to the next.
 *
 * One file per kernel, <key>.cubin, in $FA_CACHE_DIR, else $XDG_CACHE_HOME/fa-verify, else
 * ~/.cache/fa-verify. Nothing here is ever an error. A file that cannot be read, is truncated, damaged, of
 * another format, or owned by anyone but this user or root is ignored; a file that cannot be written is not
 * kept. Files appear whole or not at all, so any number of processes may read and write at once. Beyond
 * FA_CACHE_MEGABYTES (256) the least recently used files are removed.
 *
 * A file begins with fa_cubin_cache_header, in the byte order of the machine; the code follows. */
#ifndef FA_GPU_MODULES_CACHE_H
#define FA_GPU_MODULES_CACHE_H

#include "gpu/driver/nvrtc.h"

#include <stdint.h>

#define FA_CACHE_FORMAT 1
#define FA_CACHE_KEY_SIZE 65 /* SHA-256 in hex, and a NUL */

typedef struct fa_cubin_cache_header {
  char magic[8]; /* "FACUBIN" */
  uint32_t format, header_bytes;
  char key[FA_CACHE_KEY_SIZE];
  char sha256[FA_CACHE_KEY_SIZE]; /* of the header with zeros in this field, and of the code */
  fa_nvrtc_identity made_by;
  uint64_t code_bytes;
} fa_cubin_cache_header;

/* "" if there is no place for it. */
void fa_cubin_cache_folder(char *path, size_t size);

/* The code kept under this key, malloc'd, and the compiler that made it; NULL: none. */
void *fa_cubin_cache_read(const char *key, fa_nvrtc_identity *made_by, size_t *code_bytes);

/* So that a kernel that several processes or threads need at once is compiled by one of them: waits until nobody else has
 * the key, for a minute at most, and takes it. -1: it is not to be had, and the caller does without. A process that ends
 * gives back what it has. */
int fa_cubin_cache_claim(const char *key);
void fa_cubin_cache_release(const char *key, int claim);

/* false: it was not kept. */
bool fa_cubin_cache_write(const char *key, const fa_nvrtc_identity *made_by, const void *code,
                          size_t code_bytes);

#endif
