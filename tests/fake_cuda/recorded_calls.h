/* Calls of random cases, and what they launch through tests/fake_cuda/recorder.h. The program is linked with
 * --wrap=fa_plan_make. */
#ifndef FA_TESTS_FAKE_CUDA_RECORDED_CALLS_H
#define FA_TESTS_FAKE_CUDA_RECORDED_CALLS_H

#include "gpu/args/calls.h"
#include "tests/fake_cuda/recorder.h"

#define WORKSPACE ((void *)(uintptr_t)0x6b3d52a49f00)

typedef struct ran {
  fa_status status;
  recorder_log log;
  int n_planned; /* how often a plan was made */
  fa_error err;
} ran;

ran run(const fa_call *call);
/* As if no call had been made before. */
ran run_fresh(const fa_call *call);
/* The same launches, or the same refusal. */
bool same(const ran *x, const ran *y);

/* *x: the calls of case i, whose tensors all lie at one place; the caller frees it. False, and nothing is to be freed: there
 * are none that may be kept. */
bool make_calls(int64_t i, fa_args *x);
/* One of the two, by turns. */
const fa_call *pass_of(const fa_args *x, int64_t i);

#endif
