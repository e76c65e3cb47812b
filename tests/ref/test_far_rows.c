/* Rows whose largest score is -3e38: the LSE rounds to that score and has lost the log of the sum, so that exp(x -
 * LSE) is 1 and not 1 / n. The reference keeps that log apart. Compared with a plain softmax in double. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

enum { Q = 6, K = 11, D = 5 };

#define CASE                                                                                                 \
  "{\"family\":\"memeff\",\"dtype\":\"f32\",\"seqlen_q\":6,\"seqlen_k\":11,\"head_dim\":5,"                  \
  "\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true}}"

static double at(const fa_tensors *t, fa_tensor_id id, int64_t row, int64_t x) {
  return fa_tensor_get(&t->t[id], (int64_t[FA_MAX_RANK]){0, row, 0, x});
}

/* Rows 0 to 3 hold the lowest float everywhere; in rows 4 and 5 one key is 1000 less far away. */
static void push_away(fa_tensors *t) {
  for (int64_t i = 0; i < Q; ++i)
    for (int64_t j = 0; j < K; ++j)
      fa_tensor_set(&t->t[FA_T_BIAS], (int64_t[FA_MAX_RANK]){0, 0, i, j},
                    i > 3 && j == 2 ? 0 : -fa_dtype_max(FA_F32));
}

typedef struct plain {
  double o[Q][D], dq[Q][D], dk[K][D], dv[K][D], dbias[Q][K];
} plain;

/* In such a row the scores beside the bias are swallowed: all keys weigh the same, or one takes all. */
static void softmax(const fa_tensors *t, int64_t i, double *p) {
  double x[K], max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < K; ++j) {
    double s = 0;
    for (int64_t d = 0; d < D; ++d) s += at(t, FA_T_Q, i, d) * at(t, FA_T_K, j, d);
    x[j] = s / sqrt(D) + fa_tensor_get(&t->t[FA_T_BIAS], (int64_t[FA_MAX_RANK]){0, 0, i, j});
    max = fmax(max, x[j]);
  }
  for (int64_t j = 0; j < K; ++j) sum += p[j] = exp(x[j] - max);
  for (int64_t j = 0; j < K; ++j) p[j] /= sum;
}

static void plain_attention(const fa_tensors *t, plain *out) {
  memset(out, 0, sizeof *out);
  for (int64_t i = 0; i < Q; ++i) {
    double p[K], dp[K] = {0}, delta = 0;
    softmax(t, i, p);
    for (int64_t j = 0; j < K; ++j)
      for (int64_t d = 0; d < D; ++d) {
        out->o[i][d] += p[j] * at(t, FA_T_V, j, d);
        out->dv[j][d] += p[j] * at(t, FA_T_DO, i, d);
        dp[j] += at(t, FA_T_DO, i, d) * at(t, FA_T_V, j, d);
      }
    for (int64_t j = 0; j < K; ++j) delta += p[j] * dp[j];
    for (int64_t j = 0; j < K; ++j) {
      out->dbias[i][j] = p[j] * (dp[j] - delta);
      for (int64_t d = 0; d < D; ++d) {
        out->dq[i][d] += out->dbias[i][j] / sqrt(D) * at(t, FA_T_K, j, d);
        out->dk[j][d] += out->dbias[i][j] / sqrt(D) * at(t, FA_T_Q, i, d);
      }
    }
  }
}

static void same(const char *what, const fa_want *got, const double *want, double tolerance) {
  for (int64_t e = 0; e < got->n; ++e)
    CHECK_MSG(fabs(got->value[e] - want[e]) <= tolerance, "%s [%lld] is %.17g, plain %.17g", what,
              (long long)e, got->value[e], want[e]);
}

static void gradients_same(const char *form, const fa_wants *got, const plain *want, double tolerance) {
  char what[32];
  const struct {
    fa_tensor_id id;
    const double *want;
  } all[] = {
      {FA_T_DQ, want->dq[0]}, {FA_T_DK, want->dk[0]}, {FA_T_DV, want->dv[0]}, {FA_T_DBIAS, want->dbias[0]}};
  for (int k = 0; k < 4; ++k) {
    snprintf(what, sizeof what, "%s %s", form, fa_tensor_id_name(all[k].id));
    same(what, &got->t[all[k].id], all[k].want, tolerance);
  }
}

static void store(fa_tensors *t, fa_tensor_id id, const fa_want *w) {
  for (int64_t e = 0; e < w->n; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&t->t[id], e, index);
    fa_tensor_set(&t->t[id], index, w->value[e]);
  }
}

/* O's bound knows that every P is 1 / n. Gradients: what a kernel can know from its own LSE is unbounded. */
static void bounds_fit(const fa_problem *p, const fa_tensors *t, const fa_wants *forward) {
  const fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_wants bounded, gradients;
  REQUIRE(fa_ref_forward(p, t, &opt, &bounded, NULL) == FA_OK);
  for (int64_t e = 0; e < bounded.t[FA_T_O].n; ++e)
    CHECK_MSG(e / D > 3 || fa_want_bound(&bounded.t[FA_T_O], e) < 64 * 0x1p-24, "%g u",
              fa_want_bound(&bounded.t[FA_T_O], e) * 0x1p24);
  REQUIRE(fa_ref_backward(p, t, &t->t[FA_T_O], &t->t[FA_T_LSE], forward, &opt, &gradients, NULL) == FA_OK);
  for (int64_t e = 0; e < gradients.t[FA_T_DQ].n; ++e)
    CHECK((fa_want_bound(&gradients.t[FA_T_DQ], e) > 0x1p40) == (e / D < 4));
  fa_wants_free(&bounded);
  fa_wants_free(&gradients);
}

int main(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_case c;
  fa_tensors t;
  fa_wants forward, gradients;
  plain want;
  REQUIRE(fa_case_from_text(CASE, &c, NULL) == FA_OK && fa_case_build(&c, &t, NULL) == FA_OK);
  push_away(&t);
  plain_attention(&t, &want);
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  same("o", &forward.t[FA_T_O], want.o[0], 1e-14);
  REQUIRE(fa_ref_backward(&c.problem, &t, NULL, NULL, &forward, &opt, &gradients, NULL) == FA_OK);
  gradients_same("end to end", &gradients, &want, 1e-14);
  fa_wants_free(&gradients);
  store(&t, FA_T_O, &forward.t[FA_T_O]);
  store(&t, FA_T_LSE, &forward.t[FA_T_LSE]);
  REQUIRE(fa_ref_backward(&c.problem, &t, &t.t[FA_T_O], &t.t[FA_T_LSE], &forward, &opt, &gradients, NULL) ==
          FA_OK);
  gradients_same("given", &gradients, &want, 1e-6); /* O and the near rows' LSE are rounded to f32 */
  bounds_fit(&c.problem, &t, &forward);
  fa_wants_free(&gradients);
  fa_wants_free(&forward);
  fa_tensors_free(&t);
  fa_case_free(&c);
  return check_done();
}
