/* Terms of the bounds that few data have, each function by itself: a P of which nothing is known, scores that overflow times a scale of 0,
 * queries that are restored after a tile, independent errors of dP in delta, a sum of 8-bit products that cancels, sums that reach what f16 holds or are added in
 * memory, the size of dLSE. */
#include "ref/attention/outputs.h"
#include "ref/bounds/backward.h"
#include "ref/bounds/narrow.h"
#include "ref/reference.h"
#include "tests/held/case_of.h"

#include <math.h>

static fa_profile plain(void) {
  fa_profile p = {
      .block_n = 64, .max_scores = INFINITY, .max_dp = INFINITY, .max_p = INFINITY, .max_weight = INFINITY};
  for (int i = 0; i < FA_N_PRODUCTS; ++i) p.accumulator[i] = FA_ACCUMULATOR_F32, p.operand_max[i] = INFINITY;
  return p;
}

/* ---- a P of which nothing is known ---- */

/* What its error comes to, where its logarithm is exponent and may be off by error; *overflows: whether a narrow type may. */
static float unknown(double exponent, float error, bool *overflows) {
  static fa_bound_scratch b;
  static double s[1], l[1];
  fa_profile profile = plain();
  static const fa_problem p = {.scale = 1};
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = 1, .dv = 1};
  const fa_ref_scratch w = {.s = s, .l = l};
  float e[1] = {error};
  profile.operand_max[FA_PRODUCT_PV] = 65504;
  b.e_logit = e, b.overflows = false;
  s[0] = exponent;
  fa_bound_backward_row_exponent(&c, fa_rows_best(), &w, &b, 0, 1, 0, 1);
  *overflows = b.overflows;
  return e[0];
}

static void test_unknown(void) {
  bool overflows;
  CHECK(unknown(-10, 20, &overflows) == FA_GREATEST_WEIGHT &&
        !overflows);                                  /* e^20 is within what the weight allows */
  const float wide = unknown(-10, 28.2f, &overflows); /* e^28.2 is 1.8e12 */
  CHECK_MSG(wide > FA_GREATEST_WEIGHT * 20000 && wide < FA_GREATEST_WEIGHT * 25000, "%g", wide);
  unknown(19.5, 5, &overflows);
  CHECK(!overflows);
  unknown(20.5, 5, &overflows);
  CHECK(overflows);
}

/* ---- scores ---- */

enum { ROWS = 2, KEYS = 2, D = 3 };

typedef struct scores {
  fa_bound_scratch b;
  float q[ROWS * D], k[KEYS * D], row_q[ROWS * D], row_k[KEYS * D], e[ROWS * KEYS];
  double s[ROWS * KEYS];
} scores;

static scores *scores_of(double scale, fa_profile profile, bool rotated) {
  static scores x;
  const fa_problem p = {.scale = scale};
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = D, .dv = D};
  static fa_ref_rows r = {.n = ROWS};
  x = (scores){.b = {.unit_q = 2, .unit_k = 2}};
  for (int i = 0; i < ROWS * D; ++i) x.q[i] = 0.25f + 0.125f * (float)i, x.row_q[i] = 0x1p-6f;
  for (int i = 0; i < KEYS * D; ++i) x.k[i] = 1 - 0.125f * (float)i, x.row_k[i] = 0x1p-7f;
  x.b.q = x.q, x.b.k = x.k, x.b.e_logit = x.e;
  if (rotated) x.b.row_q = x.row_q, x.b.row_k = x.row_k;
  fa_bound_logits_begin(&x.b, &c, &r, 0, KEYS, x.s);
  return &x;
}

/* The next tile of keys meets the same queries. */
static void test_restored(void) {
  const scores *x = scores_of(1, plain(), true);
  for (int i = 0; i < ROWS * D; ++i) CHECK(x->q[i] == 0.25f + 0.125f * (float)i);
}

static void test_no_scale(void) {
  fa_profile narrow = plain();
  narrow.u_scores = 0x1p-9, narrow.max_scores = 0x1p-10;
  const scores *x = scores_of(0, narrow, false);
  for (int i = 0; i < ROWS * KEYS; ++i) CHECK(x->e[i] == INFINITY);
}

/* ---- delta as the sum of P dP ---- */

/* What four pairs of P 1/4 and dP 1 add, of which the errors of dP are so large. */
static fa_bound_delta_sum delta_of(float error) {
  static fa_bound_scratch b;
  const fa_profile profile = plain();
  static const fa_problem p = {.scale = 1};
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = 1, .dv = 1, .lambda = 5};
  double s[4], dp[4];
  float none[4] = {0}, e_dp[4];
  for (int j = 0; j < 4; ++j) s[j] = 0.25, dp[j] = 1, e_dp[j] = error;
  const fa_ref_scratch w = {.s = s, .dp = dp};
  b.e_logit = b.d = none, b.e_dp = error > 0 ? e_dp : NULL, b.unit_do = 1, b.unit_v = 2;
  b.row_delta[0] = (fa_bound_delta_sum){0};
  fa_bound_delta_add(&c, &w, &b, 0, 4, 0, 4);
  return b.row_delta[0];
}

static void test_delta(void) {
  const fa_bound_delta_sum none = delta_of(0), some = delta_of(0.125f);
  CHECK(none.squares == 0 && none.worst == 0);
  CHECK_MSG(some.squares == 4 * 0x1p-8 && some.worst == 5 * 0.25, "%g, %g", some.squares, some.worst);
}

/* ---- products of 8 bits ---- */

/* A block of ones, whose sum may be cut; a block that takes it away again; and one small product, beside a sum so far that may lie on
 * either side of 0. */
static void test_cancelled(void) {
  enum { WIDTH = 65, NONE = -2000 };
  static float q[WIDTH], k[WIDTH];
  static int q_exponent[WIDTH], k_exponent[WIDTH];
  static double k_descale[] = {1};
  static fa_bound_scratch b;
  static const fa_ref_rows r = {.n = 1};
  static const fa_problem p = {.scale = 1};
  const fa_ref_call c = {.p = &p, .d = WIDTH};
  const double s[] = {0};
  float error[1];
  for (int d = 0; d < 32; ++d) q[d] = k[d] = 1;
  q[32] = -32, k[32] = 1;
  q[64] = k[64] = 0x1p-6f;
  for (int d = 0; d < WIDTH; ++d) {
    q_exponent[d] = q[d] != 0 ? ilogb(q[d]) : NONE;
    k_exponent[d] = k[d] != 0 ? ilogb(k[d]) : NONE;
  }
  b.narrow = (fa_bound_narrow){q, k, q_exponent, k_exponent, k_descale, {1}};
  b.e_logit = error;
  fa_bound_narrow_scores(&b, &c, &r, 0, 1, s);
  /* 32 of 2^-13 each is cut to 2^-8. Beside -32 what may lie below 32 is cut to 2^-8 again. Of what is left, at most -2^-7 + 2^-13,
   * nothing is known: the product's quantum may be the largest, 2^-25, and then the new sum is cut to 2^-21. */
  const double want = 1.0001 * (0x1p-8 - 0x1p-13 + 0x1p-8 + 0x1p-21 - 0x1p-25);
  CHECK_MSG(fabs(error[0] - want) < 1e-6 * want, "%.9g, not %.9g", error[0], want);
}

/* ---- dropout ---- */

/* The bounds of the last of three rows, of which the first sees no key of the others' chunk; more: a second sequence of so many. */
static void chunked(int more, double *sum) {
  char text[400];
  fa_tensors in;
  fa_wants out = {0};
  snprintf(text, sizeof text,
           "{\"head_dim\":8,\"cu_seqlens_q\":[0,3,%d],\"cu_seqlens_k\":[0,130,%d],\"mask\":{\"type\":"
           "\"chunk\",\"size\":128},"
           "\"dropout\":{\"p\":0.25,\"seed\":\"3\"}}",
           3 + more, 130 + more);
  fa_case c = case_of(text, &in);
  const fa_profile profile = fa_profile_get("recorded", c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &out, NULL) == FA_OK);
  *sum = 0;
  for (int x = 0; x < 8; ++x) *sum += fa_want_bound(&out.t[FA_T_O], 2 * 8 + x);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* A row's factors lie where no other row has anything, however small the call is. */
static void test_chunks(void) {
  double alone, beside;
  chunked(0, &alone);
  chunked(300, &beside);
  CHECK_MSG(alone > 0 && fabs(alone - beside) <= 1e-3 * beside, "%g, %g", alone, beside);
}

/* ---- gradients ---- */

/* Bounds of dQ and dK of an element whose magnitudes' sum is `largest` units, summed in f16, of which each is 2^-10. */
static void sums_of(float largest, double unit, bool *dq_overflows, bool *dk_overflows) {
  fa_profile profile = plain();
  profile.accumulator[FA_PRODUCT_DQ] = profile.accumulator[FA_PRODUCT_DK] = FA_ACCUMULATOR_F16;
  static fa_bound_scratch b;
  static fa_ref_rows r;
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_case c = case_of("{\"seqlen_q\":4,\"seqlen_k\":1,\"head_dim\":8}", &in);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_ref_backward_outputs(&call, NULL) == FA_OK);
  fa_ref_rows_init(&call, &call.entry[0], 0, 0, &r);
  static float sums[4 * 8], zeros[4 * 8], max_k[1] = {1};
  for (int x = 0; x < 4 * 8; ++x) sums[x] = largest;
  b.unit_ds = unit, b.unit_k = b.unit_q = b.unit_do = 1, b.max_k = max_k;
  b.dq1 = sums, b.dqe = b.dq2 = zeros;
  fa_bound_backward_end(&call, &r, &b);
  *dq_overflows = out.t[FA_T_DQ].accum[0] == INFINITY;
  const fa_backward_job job = {.c = &call};
  for (int x = 0; x < 8; ++x) out.t[FA_T_DK].quant[x] = largest;
  fa_bound_backward_finish(&job, &call.entry[0], 0, 0, 1, &b);
  *dk_overflows = out.t[FA_T_DK].accum[0] == INFINITY;
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void test_sum_limits(void) {
  bool dq, dk;
  sums_of(65504 * 1000, 0x1p-10, &dq, &dk); /* of units of 2^-10: 63969 */
  CHECK(!dq && !dk);
  sums_of(65504 * 1024, 0x1p-10, &dq, &dk); /* at the limit, but that the sum is one of floats */
  CHECK(dq && dk);
}

/* Added in memory, where each addition may lose so much: after dropout's factor. */
static void test_added(void) {
  fa_profile profile = plain();
  profile.dkv_atomic = true, profile.floor_dkv = 1, profile.block_m = 64;
  static fa_bound_scratch b;
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_case c =
      case_of("{\"seqlen_q\":4,\"seqlen_k\":1,\"head_dim\":8,\"dropout\":{\"p\":0.75,\"seed\":\"1\"}}", &in);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_ref_backward_outputs(&call, NULL) == FA_OK);
  b.unit_ds = b.unit_k = b.unit_q = b.unit_do = 1;
  const fa_backward_job job = {.c = &call};
  for (int x = 0; x < 8; ++x) out.t[FA_T_DV].quant[x] = 1;
  fa_bound_backward_finish(&job, &call.entry[0], 0, 0, 1, &b);
  const double want = (4.0 / 64 + 3) * 4;
  CHECK_MSG(fabs(out.t[FA_T_DV].accum[0] - want) < 0.01, "%g, not %g", out.t[FA_T_DV].accum[0], want);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- units ---- */

static void test_dlse(void) {
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_bound_scratch b;
  fa_case c = case_of("{\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":8,\"grad_lse\":true}", &in);
  const fa_profile profile = fa_profile_get("simt-f32", c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_bound_scratch_init(&b, &call, true, NULL, NULL) == FA_OK);
  double most = 0;
  for (int64_t i = 0; i < 9; ++i)
    most = fmax(most, fabs(fa_tensor_get(&in.t[FA_T_DLSE], (int64_t[FA_MAX_RANK]){0, 0, i})));
  CHECK_MSG(most > 0 && b.unit_dlse >= most && b.unit_dlse <= 4 * most, "%g, %g", b.unit_dlse, most);
  fa_bound_scratch_free(&b);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_unknown();
  test_restored();
  test_no_scale();
  test_delta();
  test_cancelled();
  test_chunks();
  test_sum_limits();
  test_added();
  test_dlse();
  return check_done();
}
