#include "tests/fake_cuda/recorded_calls.h"

#include "fuzz/generate/draw.h"
#include "gpu/cuda/run.h"
#include "tests/support/check.h"

#include <string.h>

#define WORKSPACE_BYTES ((size_t)1 << 60)

static _Thread_local int n_planned;

/* So that what a plan leaves unset is the same in all of them. */
fa_status __real_fa_plan_make(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                              fa_error *err);
fa_status __wrap_fa_plan_make(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                              fa_error *err);
fa_status __wrap_fa_plan_make(const fa_call *call, const fa_kernel_device *device, fa_plan *out,
                              fa_error *err) {
  ++n_planned;
  memset(out, 0, sizeof *out);
  return __real_fa_plan_make(call, device, out, err);
}

/* ---- calls ---- */

ran run(const fa_call *call) {
  ran r = {.err = {""}};
  n_planned = 0;
  recorder_clear();
  r.status = fa_cuda_run(call, WORKSPACE_BYTES, NULL, NULL, &r.err);
  r.log = recorded;
  r.n_planned = n_planned;
  return r;
}

ran run_fresh(const fa_call *call) {
  fa_cuda_forget();
  return run(call);
}

bool same(const ran *x, const ran *y) {
  return x->status == y->status && x->log.n_launches == y->log.n_launches && x->log.hash == y->log.hash &&
         strcmp(x->err.text, y->err.text) == 0;
}

bool make_calls(int64_t i, fa_args *x) {
  fa_case c;
  const char *why = NULL;
  fa_error err = {""};
  REQUIRE(fa_generate("everything", 7, i, &c, &err) == FA_OK);
  const fa_status status = fa_args_stand_in(&c.problem, i % 3 != 0, FA_PLAN_PROCESSORS, x, &why, &err);
  const bool is_kept = status == FA_OK && !why && c.problem.family != FA_MERGE && !x->a.flex;
  x->forward.workspace = x->backward.workspace = WORKSPACE;
  if (!is_kept) fa_args_free(x);
  fa_case_free(&c);
  return is_kept;
}

const fa_call *pass_of(const fa_args *x, int64_t i) {
  return i % 2 && x->forward.kind != FA_CALL_CACHE ? &x->backward : &x->forward;
}
