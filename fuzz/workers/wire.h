/* A result as bytes, for the pipe from a worker process to its parent. Both are the same program, so structs
 * travel as they are in memory; the reader still trusts nothing, because the writer may have been damaged by
 * the subject that it ran. */
#ifndef FA_FUZZ_WORKERS_WIRE_H
#define FA_FUZZ_WORKERS_WIRE_H

#include "report/result.h"

#include <stddef.h>

#define FA_WIRE_MAX_BYTES ((size_t)16 << 20)

/* malloc'd; NULL when out of memory. */
char *fa_wire_pack(const fa_result *r, size_t *n_bytes);
/* *out is fa_result_init'ed before. FA_ERR_IO when the bytes are no result. */
fa_status fa_wire_unpack(const char *bytes, size_t n_bytes, fa_result *out, fa_error *err);

#endif
