/* Where delta comes from: a kernel that computes in double and takes it from its stored O, its exact O, or sum P dP. Each
 * passes under the arithmetic that it has, and dQ is wrong under another one, whose delta is not the same. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

enum { Q = 40, K = 60, D = 64 };

#define CASE "{\"dtype\":\"bf16\",\"seqlen_q\":40,\"seqlen_k\":60,\"head_dim\":64,\"fill\":\"v_offset\"}"

static double at(const fa_tensors *t, fa_tensor_id id, int64_t row, int64_t x) {
  return fa_tensor_get(&t->t[id], (int64_t[FA_MAX_RANK]){0, row, 0, x});
}
static void put(fa_tensors *t, fa_tensor_id id, int64_t row, int64_t x, double value) {
  fa_tensor_set(&t->t[id], (int64_t[FA_MAX_RANK]){0, row, 0, x}, value);
}
static double dot(const fa_tensors *t, fa_tensor_id a, int64_t i, fa_tensor_id b, int64_t j) {
  double sum = 0;
  for (int64_t d = 0; d < D; ++d) sum += at(t, a, i, d) * at(t, b, j, d);
  return sum;
}

static double softmax(const fa_problem *p, const fa_tensors *t, int64_t i, double *prob) {
  double max = -INFINITY, sum = 0;
  for (int64_t j = 0; j < K; ++j) max = fmax(max, prob[j] = p->scale * dot(t, FA_T_Q, i, FA_T_K, j));
  for (int64_t j = 0; j < K; ++j) sum += prob[j] = exp(prob[j] - max);
  for (int64_t j = 0; j < K; ++j) prob[j] /= sum;
  return max + log(sum);
}

/* O, LSE and dQ of a row. */
static void kernel_row(const fa_problem *p, fa_tensors *t, int64_t i, fa_delta_source from) {
  double prob[K], delta = 0;
  fa_tensor_set(&t->t[FA_T_LSE], (int64_t[FA_MAX_RANK]){0, 0, i}, softmax(p, t, i, prob));
  for (int64_t d = 0; d < D; ++d) {
    double o = 0;
    for (int64_t j = 0; j < K; ++j) o += prob[j] * at(t, FA_T_V, j, d);
    put(t, FA_T_O, i, d, o);
    if (from != FA_DELTA_SUM_P_DP)
      delta += at(t, FA_T_DO, i, d) * (from == FA_DELTA_EXACT_O ? o : at(t, FA_T_O, i, d));
  }
  for (int64_t j = 0; j < K && from == FA_DELTA_SUM_P_DP; ++j)
    delta += prob[j] * dot(t, FA_T_DO, i, FA_T_V, j);
  for (int64_t d = 0; d < D; ++d) {
    double dq = 0;
    for (int64_t j = 0; j < K; ++j)
      dq += prob[j] * (dot(t, FA_T_DO, i, FA_T_V, j) - delta) * at(t, FA_T_K, j, d);
    put(t, FA_T_DQ, i, d, p->scale * dq);
  }
}

static double worst_ratio(const fa_want *w, const fa_tensor *got) {
  double worst = 0;
  for (int64_t e = 0; e < w->n; ++e) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(got, e, index);
    worst = fmax(worst, fabs(fa_tensor_get(got, index) - w->value[e]) / fa_want_bound(w, e));
  }
  return worst;
}

static double judge_as(const fa_problem *p, const fa_tensors *t, fa_delta_source claimed) {
  fa_arithmetic a;
  fa_wants forward, backward;
  REQUIRE(fa_arithmetic_named("torch-math", FA_BF16, &a));
  a.delta = claimed;
  a.p_kept = claimed == FA_DELTA_SUM_P_DP;
  const fa_profile profile = fa_arithmetic_profile(&a, FA_BF16);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(p, t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(p, t, &t->t[FA_T_O], &t->t[FA_T_LSE], &forward, &opt, &backward, NULL) == FA_OK);
  const double worst = worst_ratio(&backward.t[FA_T_DQ], &t->t[FA_T_DQ]);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  return worst;
}

int main(void) {
  fa_case c;
  fa_tensors t;
  REQUIRE(fa_case_from_text(CASE, &c, NULL) == FA_OK && fa_case_build(&c, &t, NULL) == FA_OK);
  for (int from = 0; from < FA_N_DELTAS; ++from) {
    for (int64_t i = 0; i < Q; ++i) kernel_row(&c.problem, &t, i, (fa_delta_source)from);
    for (int claimed = 0; claimed < FA_N_DELTAS; ++claimed) {
      const bool same =
          (from == FA_DELTA_STORED_O) == (claimed == FA_DELTA_STORED_O); /* the others differ by f32 */
      const double worst = judge_as(&c.problem, &t, (fa_delta_source)claimed);
      CHECK_MSG(same ? worst <= 1 : worst > 1.5, "%s judged as %s: %g", fa_delta_source_name(from),
                fa_delta_source_name(claimed), worst);
    }
  }
  fa_tensors_free(&t);
  fa_case_free(&c);
  return check_done();
}
