/* A result as bytes, for the pipe from a worker process to its parent. Both are the same program, so structs
 * are sent as they are in memory. The reader still trusts nothing, because the writer may have been corrupted
 * by the subject that it ran. */
#ifndef FA_FUZZ_WORKERS_WIRE_H
#define FA_FUZZ_WORKERS_WIRE_H

#include "report/result.h"

#include <stddef.h>

#define FA_WIRE_MAX_BYTES ((size_t)16 << 20)

/* malloc'd; NULL when out of memory. */
char *fa_wire_pack(const fa_result *r, size_t *n_bytes);
/* *out must have been initialised by fa_result_init. FA_ERR_IO if the bytes are not a result. */
fa_status fa_wire_unpack(const char *bytes, size_t n_bytes, fa_result *out, fa_error *err);

#endif
