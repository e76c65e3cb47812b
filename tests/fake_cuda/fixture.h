/* One case through the cuda backend on the fake driver, for tests. */
#ifndef FA_TESTS_FAKE_CUDA_FIXTURE_H
#define FA_TESTS_FAKE_CUDA_FIXTURE_H

#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "tests/fake_cuda/fake.h"

/* Resets the fake driver; nothing has been compiled at run time. */
void fake_cuda_start(void);
/* Ends the test if the case cannot be made. */
void cuda_load(const char *json, fa_case *c, fa_tensors *t);

typedef struct cuda_ran {
  fa_status status;
  fa_outcome out;
  fa_error err;
  bool spent;
} cuda_ran;
extern const char *cuda_argument; /* the text after "cuda:" in later runs; initially NULL */
/* With a new backend, as in every worker. */
cuda_ran cuda_run_alone(const fa_backend *backend, const fa_problem *p, fa_tensors *t, unsigned passes);
/* The passes of the problem that the host kernels can do. */
unsigned cuda_passes_of(const fa_problem *p);
/* Compares both backends byte for byte: outputs, inputs, gaps and guards. */
void cuda_check_same_as_host(const char *json);

#endif
