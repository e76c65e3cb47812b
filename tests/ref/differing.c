#include "tests/ref/differing.h"

#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>

/* Elements that disagree: relative to the terms behind an element (slow_array.mag). */
static int64_t count_bad(const fa_want *want, const slow_array *slow) {
  int64_t bad = 0;
  if (want->n != slow->n) return want->n + slow->n;
  for (int64_t e = 0; e < want->n; ++e) {
    const long double exact = slow->value[e];
    if (want->value[e] == (double)exact || (isnan((double)exact) && isnan(want->value[e]))) continue;
    bad += !(fabsl(want->value[e] - exact) <= 1e-12L * slow->mag[e]);
  }
  return bad;
}

int64_t differing(const fa_case *c, const fa_problem *other, int64_t *of_id) {
  const fa_problem *p = &c->problem;
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  slow_outputs slow = {0};
  fa_error err = {""};
  int64_t all = 0;
  REQUIRE(fa_case_build(c, &in, &err) == FA_OK);
  fa_status status = fa_ref_forward(p, &in, &opt, &forward, &err);
  if (status == FA_OK && p->backward)
    status = fa_ref_backward(p, &in, NULL, NULL, &forward, &opt, &backward, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", c->name, err.text);
  slow_forward(other, &in, &slow);
  if (p->backward) slow_backward(other, &in, NULL, NULL, &slow);
  for (int id = 0; status == FA_OK && id < FA_T_COUNT; ++id) {
    const fa_want *want = forward.t[id].n ? &forward.t[id] : &backward.t[id];
    if (want->n == 0 || id == FA_T_P_DEBUG) continue;
    const int64_t bad = count_bad(want, &slow.t[id]);
    if (of_id) of_id[id] = bad;
    all += bad;
  }
  slow_outputs_free(&slow);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  return all;
}
