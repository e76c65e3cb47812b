/* What a backend does in a build without the CUDA toolkit: it says so. Its open sets *self to an fa_absent of its own. */
#ifndef FA_GPU_CUDA_BACKEND_ABSENT_H
#define FA_GPU_CUDA_BACKEND_ABSENT_H

#include "gpu/backend.h"

typedef struct fa_absent {
  const char *name, *arithmetic; /* of the backend that is not there; the set of its profile */
} fa_absent;

fa_status fa_absent_refuse(fa_error *err); /* FA_ERR_UNSUPPORTED */

void fa_absent_close(void *self);
void fa_absent_describe(void *self, fa_backend_info *out);
unsigned fa_absent_supports(void *self, const fa_problem *p, char *reason, size_t reason_size);
void fa_absent_profile(void *self, const fa_problem *p, fa_profile *out);
fa_status fa_absent_run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                        fa_outcome *out, fa_error *err);

#endif
