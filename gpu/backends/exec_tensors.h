/* The tensors of a call as safetensors files, for the child of exec:CMD. Row-major, named as in recorded
 * runs. Caches that a call appends to are inputs k and v, and outputs k_after and v_after. */
#ifndef FA_GPU_BACKENDS_EXEC_TENSORS_H
#define FA_GPU_BACKENDS_EXEC_TENSORS_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All inputs of the call. */
fa_status fa_exec_write_inputs(const char *path, const fa_tensors *t, fa_error *err);
/* The outputs of these passes as they are in t: poisoned, and the caches unchanged. */
fa_status fa_exec_write_outputs(const char *path, const fa_problem *p, const fa_tensors *t, unsigned passes,
                                fa_error *err);
/* Reads the same tensors from the file into t. FA_ERR_INPUT: one is missing or does not fit, or the file is
 * malformed; t may then hold some of them. */
fa_status fa_exec_read_outputs(const char *path, const fa_problem *p, fa_tensors *t, unsigned passes,
                               fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
