/* One case from recipe to verdict: the only path, shared by run, random, repro, shrink, golden and the fuzz
 * targets. */
#ifndef FA_FUZZ_ONE_RUN_CASE_H
#define FA_FUZZ_ONE_RUN_CASE_H

#include "fuzz/one/preparing.h"
#include "gpu/backend.h"
#include "report/result.h"

typedef struct fa_run_config {
  const fa_backend *backend;
  void *backend_self;      /* from backend->open */
  fa_preparing *preparing; /* waited for before the device is needed; NULL: nothing to wait for */
  int n_threads;           /* for the reference and the backend */
  uint64_t schedule_seed;  /* of the first run; the second one takes the next */
  bool end_to_end;         /* judge gradients end to end too, not only conditionally */
  const char *keep_dir;    /* dump tensors of failures here; NULL = do not */
} fa_run_config;

/* Builds the inputs, runs the subject twice (different poison), checks guards, gaps, inputs and
 * repeatability, then judges every output by the reference. It never fails because the subject is wrong:
 * fa_status is for the world, and is also recorded in *out as FA_ERROR. *out must have been initialised by
 * fa_result_init. */
fa_status fa_run_case(const fa_case *c, const fa_run_config *config, fa_result *out, fa_error *err);

#endif
