/* safetensors files: an 8-byte little-endian header length, a JSON header, raw little-endian data.
 *
 * The reader maps the file and trusts nothing: it checks the header length and every offset, shape product
 * and overlap against the file's real size before it allocates, so a hostile length costs nothing. It accepts
 * dtypes F16 BF16 F32 F64 I32 U8 and BOOL (as u8), at most FA_MAX_RANK axes, data covered without overlaps or
 * holes, and the names and metadata keys of cases/tensors/safetensors_name.h. Errors name the file and the
 * tensor: FA_ERR_IO if the file cannot be read (or is not a regular file), FA_ERR_INPUT if it is malformed.
 * If another process truncates the file while it is open, this process dies (SIGBUS). */
#ifndef FA_CASES_TENSORS_SAFETENSORS_H
#define FA_CASES_TENSORS_SAFETENSORS_H

#include "cases/base/status.h"
#include "cases/tensors/set.h"

#include <stdio.h>

typedef struct fa_st_entry {
  char *name;       /* owned by the file */
  fa_tensor tensor; /* row-major view into the mapping; read only; data may be unaligned for its type */
} fa_st_entry;

typedef struct fa_st_meta {
  char *key, *value; /* owned by the file */
} fa_st_meta;

typedef struct fa_safetensors {
  fa_st_entry *entry; /* in the order of the header */
  int64_t n_entries;
  fa_st_meta *meta; /* __metadata__ */
  int64_t n_meta;
  void *map; /* internal */
  size_t map_bytes;
} fa_safetensors;

fa_status fa_safetensors_open(const char *path, fa_safetensors *out, fa_error *err);
/* The same for bytes in memory, which the caller keeps alive and unchanged (fuzzing). */
fa_status fa_safetensors_parse(const void *bytes, size_t n_bytes, const char *name, fa_safetensors *out,
                               fa_error *err);
void fa_safetensors_close(fa_safetensors *f);
const fa_tensor *fa_safetensors_find(const fa_safetensors *f, const char *name); /* NULL = absent */
const char *fa_safetensors_meta(const fa_safetensors *f, const char *key);       /* NULL = absent */

/* Writes atomically (temporary file in the same folder, fsync, rename). Tensors of any strides are stored
 * row-major, wide types first, so that each is aligned for its type. Names and metadata keys obey
 * cases/tensors/safetensors_name.h and are unique. The file at path changes only if everything was
 * written. */
fa_status fa_safetensors_write(const char *path, const char *const *names, const fa_tensor *const *tensors,
                               int64_t n_tensors, const char *const *meta_keys,
                               const char *const *meta_values, int64_t n_meta, fa_error *err);

/* The same to an open stream, which is then flushed; path names it in messages. */
fa_status fa_safetensors_print(FILE *file, const char *path, const char *const *names,
                               const fa_tensor *const *tensors, int64_t n_tensors,
                               const char *const *meta_keys, const char *const *meta_values, int64_t n_meta,
                               fa_error *err);

#endif
