/* An LSE of packed queries that is padded: what the reference expects of it, what a kernel may do with the padding, and what
 * it may not do with rows. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/tensors/table.h"
#include "fuzz/one/run_case.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

#define PROBLEM                                                                                              \
  "\"dtype\":\"f16\",\"heads_q\":4,\"heads_kv\":2,\"head_dim\":16,\"cu_seqlens_q\":[0,9,9,14,34],"           \
  "\"cu_seqlens_k\":[0,4,9,9,40],\"mask\":{\"type\":\"causal\"},\"grad_lse\":true"
static const char packed[] = "{" PROBLEM "}", padded[] = "{" PROBLEM ",\"lse_layout\":\"padded\"}";

/* ---- the reference ---- */

typedef struct made {
  fa_case c;
  fa_tensors in;
  fa_wants forward, backward;
} made;

static void make(made *m, const char *json) {
  fa_error err = {""};
  memset(m, 0, sizeof *m);
  CHECK_MSG(fa_case_from_text(json, &m->c, &err) == FA_OK, "%s", err.text);
  const fa_problem *p = &m->c.problem;
  const fa_profile profile = fa_profile_get("simt-f32", p->dtype);
  const fa_ref_options options = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_case_build(&m->c, &m->in, &err) == FA_OK);
  REQUIRE(fa_ref_forward(p, &m->in, &options, &m->forward, &err) == FA_OK);
  REQUIRE(fa_ref_backward(p, &m->in, NULL, NULL, &m->forward, &options, &m->backward, &err) == FA_OK);
}

static void drop(made *m) {
  fa_wants_free(&m->forward);
  fa_wants_free(&m->backward);
  fa_tensors_free(&m->in);
  fa_case_free(&m->c);
}

static void check_same_lse(const made *a, const made *b) {
  const fa_want *want = &a->forward.t[FA_T_LSE], *other = &b->forward.t[FA_T_LSE];
  const int32_t *cu = a->c.problem.cu_seqlens_q.v;
  REQUIRE(want->rank == 2 && other->rank == 3 && other->shape[0] == 4 && other->shape[2] == 20);
  for (int64_t at = 0; at < other->n; ++at) {
    const int64_t i = at % 20, h = at / 20 % 4, e = at / 80, from = h * 34 + cu[e] + i;
    if (i >= cu[e + 1] - cu[e])
      CHECK(isnan(other->value[at]));
    else
      CHECK(memcmp(&other->value[at], &want->value[from], 8) == 0 && other->accum[at] == want->accum[from]);
  }
}

/* The same numbers as of the packed call, dLSE's too. */
static void test_reference(void) {
  static const fa_tensor_id gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV};
  made a, b;
  make(&a, packed);
  make(&b, padded);
  check_same_lse(&a, &b);
  const fa_want *o = &a.forward.t[FA_T_O];
  CHECK(memcmp(o->value, b.forward.t[FA_T_O].value, (size_t)o->n * sizeof *o->value) == 0);
  for (int k = 0; k < 3; ++k) {
    const fa_want *x = &a.backward.t[gradients[k]], *y = &b.backward.t[gradients[k]];
    CHECK(memcmp(x->value, y->value, (size_t)x->n * sizeof *x->value) == 0);
    CHECK(memcmp(x->accum, y->accum, (size_t)x->n * sizeof *x->accum) == 0);
  }
  drop(&a);
  drop(&b);
}

/* ---- kernels ---- */

/* What a kernel does with the LSE behind ref-f32's back. */
typedef enum deed {
  LEAVES,  /* the padding is left as it was */
  FILLS,   /* with infinity */
  CHANGES, /* with another number in each run */
  DRIFTS,  /* the padding is right, rows change from run to run */
  FLAT,    /* [H, total] in the memory of [B, H, S] */
  NO_LAST, /* the longest sequence's last row is not written */
  PAST     /* one element behind the tensor is written */
} deed;

static deed doing;
static int n_runs;

static void to_padding(const fa_problem *p, fa_tensor *lse, double value) {
  int64_t at[FA_MAX_RANK];
  for (int64_t e = 0; e < fa_tensor_count(lse); ++e) {
    fa_tensor_unravel(lse, e, at);
    if (fa_tensor_is_padding(p, FA_T_LSE, at)) fa_tensor_set(lse, at, value);
  }
}

static void flatten(const fa_problem *p, fa_tensor *lse) {
  const int32_t *cu = p->cu_seqlens_q.v;
  float right[4 * 34];
  for (int64_t b = 0; b < 4; ++b)
    for (int64_t h = 0; h < 4; ++h)
      for (int64_t i = cu[b]; i < cu[b + 1]; ++i)
        right[h * 34 + i] = (float)fa_tensor_get(lse, (int64_t[FA_MAX_RANK]){b, h, i - cu[b]});
  memcpy(lse->data, right, sizeof right);
}

static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  fa_tensor *lse = &t->t[FA_T_LSE];
  const int64_t last[FA_MAX_RANK] = {3, 1, 19}, first[FA_MAX_RANK] = {0};
  float before;
  memcpy(&before, lse->data + fa_tensor_offset(lse, last), sizeof before);
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  ++n_runs;
  if (doing == FILLS) to_padding(p, lse, INFINITY);
  if (doing == CHANGES) to_padding(p, lse, n_runs);
  if (doing == DRIFTS)
    fa_tensor_set(lse, first,
                  nextafterf((float)fa_tensor_get(lse, first), n_runs % 2 ? INFINITY : -INFINITY));
  if (doing == FLAT) flatten(p, lse);
  if (doing == NO_LAST) memcpy(lse->data + fa_tensor_offset(lse, last), &before, sizeof before);
  if (doing == PAST) memset(lse->data + 4 * fa_tensor_count(lse), 0, 4);
  return status;
}

static void expect(deed d, fa_state state, const char *json) {
  fa_backend b = fa_backend_ref_f32;
  fa_result r = {0};
  fa_error err = {""};
  fa_case c;
  b.run = run;
  doing = d;
  n_runs = 0;
  const fa_run_config config = {.backend = &b, .n_threads = 1};
  REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK);
  CHECK_MSG(fa_run_case(&c, &config, &r, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(r.state == state, "deed %d: %s instead of %s: %s", (int)d, fa_state_name(r.state),
            fa_state_name(state), r.reason);
  fa_result_free(&r);
  fa_case_free(&c);
}

static void test_kernels(void) {
  /* Row 0 has a key. */
  static const char seen[] =
      "{\"heads_q\":4,\"head_dim\":16,\"cu_seqlens_q\":[0,9,9,14,34],\"cu_seqlens_k\":[0,9,9,20,40],"
      "\"lse_layout\":\"padded\"}";
  expect(LEAVES, FA_PASS, padded);
  expect(FILLS, FA_PASS, padded);
  expect(CHANGES, FA_PASS, padded);
  expect(CHANGES, FA_PASS, seen);
  expect(DRIFTS, FA_NONDETERMINISTIC, seen);
  expect(FLAT, FA_FAIL, seen);
  expect(NO_LAST, FA_FAIL, seen);
  expect(PAST, FA_OOB, seen);
}

int main(void) {
  test_reference();
  test_kernels();
  return check_done();
}
