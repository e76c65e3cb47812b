/* One case through the cuda backend on the fake driver, for tests. */
#ifndef FA_TESTS_FAKE_CUDA_FIXTURE_H
#define FA_TESTS_FAKE_CUDA_FIXTURE_H

#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/fake_cuda/fake.h"

/* The fake driver as new, and nothing compiled at run time. */
void fake_cuda_start(void);
/* Ends the test where the case cannot be made. */
void cuda_load(const char *json, fa_case *c, fa_tensors *t);

typedef struct cuda_ran {
  fa_status status;
  fa_outcome out;
  fa_error err;
  bool spent;
} cuda_ran;
extern const char *cuda_argument; /* what stands behind "cuda:" in the runs to come; NULL at first */
/* With a backend of its own, as every worker has. */
cuda_ran cuda_run_alone(const fa_backend *backend, const fa_problem *p, fa_tensors *t, unsigned passes);
/* What the host kernels can do of what the problem wants. */
unsigned cuda_passes_of(const fa_problem *p);
/* Both backends, byte for byte: outputs, inputs, gaps and guards. */
void cuda_check_same_as_host(const char *json);

#endif
