#include "tests/fake_cuda/fixture.h"
#include "cases/codec/json.h"

#include "cases/data/build.h"
#include "cases/tensors/guard.h"
#include "tests/fake_cuda/fake.h"
#include "tests/fake_cuda/flex.h"
#include "tests/support/check.h"

#include <string.h>

const char *cuda_argument;

void fake_cuda_start(void) {
  fake_cuda_reset();
  fa_cuda_driver_replace(fake_cuda_driver());
  fa_cuda_kernels_replace(fake_cubins, 2);
}

void cuda_load(const char *json, fa_case *c, fa_tensors *t) {
  fa_error err = {""};
  const bool built = fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, t, &err) == FA_OK;
  if (!built) fprintf(stderr, "%s: %s\n", json, err.text);
  REQUIRE(built);
}

cuda_ran cuda_run_alone(const fa_backend *backend, const fa_problem *p, fa_tensors *t, unsigned passes) {
  cuda_ran r = {.err = {""}};
  void *self = NULL;
  const fa_run_options opt = {.passes = passes, .n_threads = 1};
  CHECK(backend->open(backend == &fa_backend_cuda ? cuda_argument : NULL, &self, &r.err) == FA_OK);
  r.status = backend->run(self, p, t, &opt, &r.out, &r.err);
  r.spent = backend->spent && backend->spent(self);
  backend->close(self);
  return r;
}

unsigned cuda_passes_of(const fa_problem *p) {
  char why[256];
  const unsigned wanted = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  return wanted & fa_backend_host.supports(NULL, p, why, sizeof why);
}

/* Compares guards, and those parts of the payload that are memory. */
static bool same_bytes(const fa_tensors *a, const fa_tensors *b, fa_tensor_id id) {
  const fa_buffer *x = &a->buffer[id], *y = &b->buffer[id];
  if (!x->base) return !y->base;
  const char *p = fa_buffer_payload(x), *q = fa_buffer_payload(y);
  bool same = memcmp(x->base, y->base, FA_GUARD_BYTES) == 0 &&
              memcmp(p + x->bytes, q + y->bytes, FA_GUARD_BYTES) == 0;
  for (int i = 0; i < fa_buffer_n_spans(x); ++i) {
    const fa_span s = fa_buffer_span(x, i);
    same = same && memcmp(p + s.begin, q + s.begin, s.end - s.begin) == 0;
  }
  return same;
}

void cuda_check_same_as_host(const char *json) {
  fa_case c;
  fa_tensors want, got;
  fa_error err;
  cuda_load(json, &c, &want);
  CHECK(fa_tensors_clone(&got, &want, &err) == FA_OK);
  fake_cuda_start();
  const unsigned passes = cuda_passes_of(&c.problem);
  const cuda_ran host = cuda_run_alone(&fa_backend_host, &c.problem, &want, passes);
  CHECK(fake_flex_begin(&c.problem, &want, &err) == FA_OK);
  const cuda_ran r = cuda_run_alone(&fa_backend_cuda, &c.problem, &got, passes);
  fake_flex_end();
  CHECK_MSG(host.status == FA_OK && host.out.state == FA_SUBJECT_OK, "%s: %s%s", json, host.out.text,
            host.err.text);
  CHECK_MSG(r.status == FA_OK && r.out.state == FA_SUBJECT_OK && !r.spent, "%s: %s%s", json, r.out.text,
            r.err.text);
  CHECK_MSG(strcmp(r.out.kernel, host.out.kernel) == 0, "%s: %s is not %s", json, r.out.kernel,
            host.out.kernel);
  CHECK_MSG(strcmp(r.out.backward_kernel, host.out.backward_kernel) == 0, "%s: %s is not %s", json,
            r.out.backward_kernel, host.out.backward_kernel);
  for (int id = 0; id < FA_T_COUNT; ++id) {
    /* blocks may add to dq in another order */
    if (id == FA_T_DQ && !c.problem.deterministic) continue;
    CHECK_MSG(same_bytes(&want, &got, (fa_tensor_id)id), "%s: %s", json, fa_tensor_id_name((fa_tensor_id)id));
  }
  CHECK_MSG(fake.misuse[0] == 0, "%s: %s", json, fake.misuse);
  CHECK_MSG(fake.n_allocations == 0 && fake.n_contexts == 0 && fake.n_streams == 0 && fake.n_graphs == 0,
            "%s: %d allocations, %d contexts, %d streams, %d graphs are left", json, fake.n_allocations,
            fake.n_contexts, fake.n_streams, fake.n_graphs);
  fa_tensors_free(&want);
  fa_tensors_free(&got);
  fa_case_free(&c);
}
