/* The tensors of a call as safetensors files, for the child behind exec:CMD. Row-major, named as in recorded
 * runs; the caches that a call appends to are inputs k and v, and outputs k_after and v_after. */
#ifndef FA_GPU_BACKENDS_EXEC_TENSORS_H
#define FA_GPU_BACKENDS_EXEC_TENSORS_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All inputs of the call. */
fa_status fa_exec_write_inputs(const char *path, const fa_tensors *t, fa_error *err);
/* What these passes are to write, as it is in t: poisoned, and the caches as they are. */
fa_status fa_exec_write_outputs(const char *path, const fa_problem *p, const fa_tensors *t, unsigned passes,
                                fa_error *err);
/* Takes the same tensors out of the file into t. FA_ERR_INPUT: one is missing or does not fit, or it is no
 * such file; t may then hold some of them. */
fa_status fa_exec_read_outputs(const char *path, const fa_problem *p, fa_tensors *t, unsigned passes,
                               fa_error *err);

#ifdef __cplusplus
}
#endif

#endif
