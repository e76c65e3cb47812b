#include "tests/ref/differing.h"

#include "cases/codec/file.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

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

/* The slow attention takes seconds for what the reference does in milliseconds. */
static bool is_small(const fa_problem *p) {
  return p->heads_q * p->batch * (p->seqlen_q + 4) * p->seqlen_k * (p->head_dim + p->head_dim_v) < 30000000;
}

static bool is_told(const fa_case *c, problem_change change) {
  fa_problem other;
  REQUIRE(fa_problem_copy(&other, &c->problem) == FA_OK);
  const bool told = change(&other) && differing(c, &other, NULL) > 0;
  fa_problem_free(&other);
  return told;
}

void check_case_file(const char *path, const char *prefix, int least, const problem_change *changes,
                     int n_changes) {
  enum { MAX_CHANGES = 8 };
  fa_case_list list = {0};
  fa_error err = {""};
  bool told[MAX_CHANGES] = {false};
  int n = 0;
  REQUIRE(n_changes <= MAX_CHANGES);
  const fa_status status = fa_case_file_load(path, NULL, &list, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  for (int64_t i = 0; i < list.n; ++i) {
    const fa_case *c = &list.v[i];
    const fa_problem *p = &c->problem;
    if (strncmp(c->name, prefix, strlen(prefix)) != 0 || p->score_mod || p->mask_mod || !is_small(p))
      continue;
    const int64_t bad = differing(c, p, NULL);
    CHECK_MSG(bad == 0, "%s: %lld elements", c->name, (long long)bad);
    ++n;
    for (int k = 0; k < n_changes; ++k)
      if (!told[k]) told[k] = is_told(c, changes[k]);
  }
  CHECK_MSG(n >= least, "%s: only %d cases", path, n);
  for (int k = 0; k < n_changes; ++k) CHECK_MSG(told[k], "%s: no case tells change %d", path, k);
  fa_case_list_free(&list);
}
