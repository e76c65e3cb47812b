/* The request "run" as JSON. */
#ifndef FA_GPU_BACKENDS_EXEC_REQUEST_H
#define FA_GPU_BACKENDS_EXEC_REQUEST_H

#include "gpu/backends/exec_subject.h"

/* About the problem that is spoken about: case, passes, threads. */
struct cJSON *fa_exec_run_request(const fa_exec_subject *x, const fa_run_options *opt);
/* For files: how the case lays tensors out. */
void fa_exec_add_strides(struct cJSON *request, const fa_tensors *t);
/* For shared memory: the region and every tensor in it. */
void fa_exec_add_memory(struct cJSON *request, const fa_exec_memory *m, const fa_exec_tensors *x);

#endif
