/* Bounds and the vacuity check account for the derivative of score_mod. A case whose score_mod cancels its
 * scale is the plain case again, with the same bounds. With a large derivative, rounding of differences that
 * cancel is neither an error nor a sign that the check is blind. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/judged_case.h"

#include <math.h>

#define CASE "{\"family\": \"flex\", \"seqlen_q\": 40, \"seqlen_k\": 30, \"heads_q\": 2, \"head_dim\": 16, "

typedef struct gradients {
  fa_case c;
  fa_tensors set;
  fa_wants forward, backward;
} gradients;

/* shrunk: this input is made as small as possible (FA_T_COUNT: none). */
static void gradients_init(gradients *g, const char *json, const char *profile_name, fa_tensor_id shrunk) {
  fa_error err = {""};
  *g = (gradients){0};
  fa_status status = fa_case_from_text(json, &g->c, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", json, err.text);
  REQUIRE(status == FA_OK && fa_case_build(&g->c, &g->set, &err) == FA_OK);
  for (int64_t e = 0; shrunk < FA_T_COUNT && e < fa_tensor_count(&g->set.t[shrunk]); ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&g->set.t[shrunk], e, index);
    fa_tensor_set(&g->set.t[shrunk], index, 0x1p-130 * fa_tensor_get(&g->set.t[shrunk], index));
  }
  const fa_profile profile = fa_profile_get(profile_name, g->c.problem.dtype);
  const fa_ref_options options = {.n_threads = 1, .profile = &profile, .generic = true};
  REQUIRE(fa_ref_forward(&g->c.problem, &g->set, &options, &g->forward, &err) == FA_OK);
  status = fa_ref_backward(&g->c.problem, &g->set, NULL, NULL, &g->forward, &options, &g->backward, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(status == FA_OK);
}

static void gradients_free(gradients *g) {
  fa_wants_free(&g->forward);
  fa_wants_free(&g->backward);
  fa_tensors_free(&g->set);
  fa_case_free(&g->c);
}

/* b's numbers must be between a's and `most` times a's. */
static void alike(const char *what, const float *a, const float *b, int64_t n, double most) {
  for (int64_t k = 0; k < n; ++k)
    if (!(b[k] >= 0.999 * a[k] && b[k] <= most * a[k]) && a[k] + b[k] > 0) {
      CHECK_MSG(false, "%s[%lld]: %g plain, %g steep", what, (long long)k, (double)a[k], (double)b[k]);
      return;
    }
}

static void same_bounds(const char *rest, double by, const char *profile, fa_tensor_id shrunk) {
  static const fa_tensor_id ids[] = {FA_T_DQ, FA_T_DK};
  char plain[512], steep[512];
  gradients a, b;
  snprintf(plain, sizeof plain, CASE "\"scale\": 0.25%s}", rest);
  snprintf(steep, sizeof steep, CASE "\"scale\": %.17g, \"score_mod\": \"%.6f * score\"%s}", 0.25 / by, by,
           rest);
  gradients_init(&a, plain, profile, shrunk);
  gradients_init(&b, steep, profile, shrunk);
  for (int k = 0; k < 2; ++k) {
    const fa_want *x = &a.backward.t[ids[k]], *y = &b.backward.t[ids[k]];
    const int64_t rows = x->n / x->shape[x->rank - 1];
    CHECK_MSG(fabs(y->steepest / by - 1) < 1e-3 && x->steepest == 1, "%g, %g", y->steepest, by);
    alike("quant", x->quant, y->quant, x->n, 1.01);
    alike("accum", x->accum, y->accum, x->n, 1.5); /* score_mod rounds too */
    alike("scale", x->scale, y->scale, rows, 1.01);
  }
  gradients_free(&a);
  gradients_free(&b);
}

/* All values are the same row: dP - delta is 0 except for rounding, which the derivative amplifies. */
static void test_cancelled(void) {
  static const char json[] =
      CASE "\"dtype\": \"f32\", \"scale\": 1e-6, \"score_mod\": \"1000000.0 * score\", "
           "\"strides\": {\"v\": {\"expand\": [\"s\"]}}}";
  fa_case c;
  REQUIRE(fa_case_from_text(json, &c, NULL) == FA_OK);
  judged_case j = judge_case(&c, NULL);
  CHECK_MSG(j.status == FA_OK && j.r->n_verdicts == 5, "%s", j.err.text);
  for (int k = 0; k < j.r->n_verdicts; ++k) {
    const fa_verdict *v = &j.r->verdict[k];
    CHECK_MSG(!v->fail && !*v->vacuous, "%s: %s %s", fa_tensor_id_name(v->id), v->where, v->vacuous);
  }
  judged_case_free(&j);
  fa_case_free(&c);
}

int main(void) {
  for (double by = 0x1p-6; by <= 0x1p6; by *= 64) {
    same_bounds(", \"dtype\": \"bf16\"", by, "mma-ampere", FA_T_COUNT);
    same_bounds(", \"dtype\": \"f32\"", by, "3xtf32", FA_T_COUNT);
  }
  /* only the loss in the operands counts here */
  same_bounds(", \"dtype\": \"f32\"", 64, "3xtf32", FA_T_K);
  same_bounds(", \"dtype\": \"f32\"", 64, "3xtf32", FA_T_Q);
  test_cancelled();
  return check_done();
}
