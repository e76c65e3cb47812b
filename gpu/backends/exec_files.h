/* Tensors of a call in safetensors files: row-major, named as in recorded runs. Caches that a call appends to are
 * inputs k and v, and outputs k_after and v_after. */
#ifndef FA_GPU_BACKENDS_EXEC_FILES_H
#define FA_GPU_BACKENDS_EXEC_FILES_H

#include "gpu/backends/exec_tensors.h"

/* All inputs of the call. */
fa_status fa_exec_write_inputs(const char *path, const fa_exec_tensors *x, fa_error *err);
/* The outputs as they are before the call: poisoned, and the caches unchanged. */
fa_status fa_exec_write_outputs(const char *path, const fa_exec_tensors *x, fa_error *err);
/* Reads the same outputs from the file. FA_ERR_INPUT: one is missing or does not fit, or the file is malformed; some
 * may then have been read. */
fa_status fa_exec_read_outputs(const char *path, const fa_exec_tensors *x, fa_error *err);

#endif
