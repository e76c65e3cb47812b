/* Terms of the bounds that few data have, each function by itself: a P of which nothing is known, scores that overflow times a scale of 0,
 * queries that are restored after a tile, independent errors of scores and of dP, delta of a stored O and of
 * rounded products, pairs whose dP or dS is beyond its type, a sum of 8-bit
 * products that cancels, sums that reach what f16 holds or are added in memory, rows that round alike, a merged part
 * without weight, the sizes of Q and dLSE, and a key that no row sees. */
#include "ref/attention/outputs.h"
#include "ref/bounds/backward.h"
#include "ref/bounds/narrow.h"
#include "ref/bounds/scattered.h"
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

/* e^0.75 - 1 and e^0.25 - 1, which are 1.117 and 0.284: the latter is taken as 0.25 + 0.25^2. */
static void test_exponents(void) {
  static const fa_problem p = {.scale = 1};
  const fa_profile profile = plain();
  const fa_ref_call c = {.p = &p, .profile = &profile};
  const double x[] = {0};
  float e[] = {0.75f}, most;
  CHECK(fa_bound_exponent(&c, fa_rows_best(), e, x, 1, 0, false, 0, &most));
  CHECK_MSG(most == e[0] && fabsf(most - 1.117f) < 1e-3f, "%g", most);
  e[0] = 0.25f;
  CHECK(fa_bound_exponent(&c, fa_rows_best(), e, x, 1, 0, false, 0, &most));
  CHECK_MSG(most == e[0] && most == 0.3125f, "%g", most);
}

/* Only the row's own keys are asked whether a score may be infinite. */
static void test_own_keys(void) {
  static fa_bound_scratch b;
  static const fa_problem p = {.scale = 1};
  fa_profile profile = plain();
  profile.operand_max[FA_PRODUCT_PV] = 65504;
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = 1, .dv = 1};
  float e[2] = {INFINITY, 0};
  double s[2] = {0}, l[1] = {0};
  const fa_ref_scratch w = {.s = s, .l = l};
  b = (fa_bound_scratch){.e_logit = e};
  fa_bound_backward_row_exponent(&c, fa_rows_best(), &w, &b, 0, 2, 1, 2);
  CHECK(!b.overflows && e[1] < 1);
}

/* ---- rows that round alike ---- */

/* Three steps, of which one is beyond the most that counts; what is masked is no step, and neither is what lies before. */
static void test_spread(void) {
  const double x[] = {9, 1, 1.25, -INFINITY, 1.25, 7};
  fa_bound_spread s;
  fa_bound_spread_begin(&s, 2);
  fa_bound_spread_add(&s, x + 1, 5);
  CHECK_MSG(s.n == 3 && s.sum == 0.25 + 0 + 2 && s.last == 7, "%lld steps of %g", (long long)s.n, s.sum);
  CHECK(fa_bound_is_alike(&s, 0.75) && !fa_bound_is_alike(&s, 0.5));
}

/* The bound of O's roundings of P where queries are filled so. */
static double rounded_by(const char *fill) {
  char text[300];
  fa_tensors in;
  fa_wants out = {0};
  snprintf(text, sizeof text,
           "{\"seqlen_q\":1,\"seqlen_k\":2048,\"head_dim\":8,\"dropout\":{\"p\":0.25,\"seed\":\"3\"},"
           "\"fill\":{\"q\":\"%s\"}}",
           fill);
  fa_case c = case_of(text, &in);
  fa_profile profile = plain();
  profile.u_p = 0x1p-9;
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile, .generic = true};
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &out, NULL) == FA_OK);
  const double quant = out.t[FA_T_O].quant[0];
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return quant;
}

/* Where all P of a row are one number their roundings add up, and grow as their number does. */
static void test_alike(void) {
  const double apart = rounded_by("normal"), alike = rounded_by("zero");
  CHECK_MSG(alike > 4 * apart && apart > 0, "%g, %g", alike, apart);
}

/* ---- scores ---- */

enum { ROWS = 2, KEYS = 3, D = 3 };

typedef struct scores {
  fa_bound_scratch b;
  float q[ROWS * D], k[KEYS * D], row_q[ROWS * D], row_k[KEYS * D], e[ROWS * KEYS];
  double s[ROWS * KEYS];
} scores;

static scores *scores_of(double scale, fa_profile profile, double unit, bool rotated) {
  static scores x;
  const fa_problem p = {.scale = scale};
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = D, .dv = D};
  static fa_ref_rows r = {.n = ROWS};
  x = (scores){.b = {.unit_q = unit, .unit_k = 2}};
  for (int i = 0; i < ROWS * D; ++i) x.q[i] = 0.25f + 0.125f * (float)i, x.row_q[i] = 0x1p-6f;
  for (int i = 0; i < KEYS * D; ++i) x.k[i] = 1 - 0.125f * (float)i, x.row_k[i] = 0x1p-7f;
  x.b.q = x.q, x.b.k = x.k, x.b.e_logit = x.e;
  if (rotated) x.b.row_q = x.row_q, x.b.row_k = x.row_k;
  fa_bound_logits_begin(&x.b, &c, &r, 0, KEYS, x.s);
  return &x;
}

/* The next tile of keys meets the same queries. */
static void test_restored(void) {
  const scores *x = scores_of(1, plain(), 2, true);
  for (int i = 0; i < ROWS * D; ++i) CHECK(x->q[i] == 0.25f + 0.125f * (float)i);
}

static void test_no_scale(void) {
  fa_profile narrow = plain();
  narrow.u_scores = 0x1p-9, narrow.max_scores = 0x1p-10;
  const scores *x = scores_of(0, narrow, 2, false);
  for (int i = 0; i < ROWS * KEYS; ++i) CHECK(x->e[i] == INFINITY);
}

/* The unit is a power of two above the largest element, which is more than half of it. */
static void test_large_queries(void) {
  fa_profile f16 = plain();
  f16.operand_max[FA_PRODUCT_QK] = 65504;
  CHECK(scores_of(1, f16, 65536, false)->e[0] < 1e6f);
  CHECK(scores_of(1, f16, 131072, false)->e[0] == INFINITY);
}

/* Independent errors of scores that are rounded: of one that is hidden there are none. */
static void test_hidden_score(void) {
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = 1};
  const fa_problem p = {.scale = 1};
  fa_profile profile = plain();
  profile.u_scores = 0x1p-9;
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = 1, .generic = true};
  const double s[] = {-INFINITY, 2};
  float e_score[2], e[2] = {0};
  b.e_score = e_score, b.e_logit = e;
  fa_bound_scatter_begin(&b, &c, &r, 0, 2, s);
  CHECK(e_score[0] == 0 && e_score[1] > 0x1p-7f && e_score[1] < 0x1.01p-7f);
}

/* Where nothing is independent a sum of n absolute values is sqrt(n) times the root of their squares. */
static void test_small_operands(void) {
  enum { WIDTH = 8 };
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = 1};
  const fa_problem p = {.scale = 1};
  fa_profile profile = plain();
  profile.operand_step[FA_PRODUCT_QK] = 0x1p-10;
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = WIDTH};
  const double s[] = {1};
  float q2[WIDTH], k2[WIDTH], e_score[1], e[1] = {0};
  for (int x = 0; x < WIDTH; ++x) q2[x] = 1, k2[x] = 0;
  b.q2 = q2, b.k2 = k2, b.e_score = e_score, b.e_logit = e, b.unit_q = b.unit_k = 1;
  fa_bound_scatter_begin(&b, &c, &r, 0, 1, s);
  const double want = 0x1p-10 * sqrt(2 * WIDTH) * sqrt(WIDTH);
  CHECK_MSG(fabs(e_score[0] - want) < 1e-3 * want, "%g, not %g", e_score[0], want);
}

/* A cap below 1 flattens errors as one above it does. */
static void test_low_cap(void) {
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = 1, .hi = {1}};
  static const fa_ref_sequence entry = {.sq = 1, .sk = 1};
  const fa_problem p = {.scale = 1, .softcap = 0.5};
  const fa_profile profile = plain();
  const fa_ref_call c = {.p = &p, .profile = &profile, .d = 1, .generic = true};
  const double x[] = {0.495}, th[] = {0.99};
  float e_score[1] = {0x1p-10f}, e[1] = {0};
  r.e = &entry;
  b.e_score = e_score, b.e_logit = e;
  fa_bound_logits_end(&b, &c, &r, 0, 1, x, th, NULL);
  CHECK_MSG(e_score[0] > 0 && e_score[0] < 0x1p-14f, "%g", e_score[0]);
}

/* ---- delta as the sum of P dP ---- */

/* What four pairs of P 1/4 and dP 1 add, of which the errors of dP are so large; floor: what a P below the normal range loses. */
static fa_bound_delta_sum delta_of(float error, double floor) {
  static fa_bound_scratch b;
  fa_profile profile = plain();
  profile.floor_p = floor;
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
  const fa_bound_delta_sum none = delta_of(0, 0), some = delta_of(0.125f, 0);
  CHECK(none.squares == 0 && none.worst == 0);
  CHECK_MSG(some.squares == 4 * 0x1p-8 && some.worst == 5 * 0.25, "%g, %g", some.squares, some.worst);
  const fa_bound_delta_sum lost = delta_of(0, 1); /* no P loses more than itself */
  CHECK_MSG(lost.worst == 4 * 0.25, "%g", lost.worst);
}

/* ---- delta from O ---- */

/* Independent errors of O come with the squares of dO. */
static void test_delta_of_o(void) {
  static fa_bound_scratch b;
  static fa_ref_rows r = {.n = 1};
  fa_tensors in;
  fa_wants forward = {0}, out = {0};
  fa_ref_call call;
  fa_case c = case_of("{\"seqlen_q\":1,\"seqlen_k\":3,\"head_dim\":8}", &in);
  fa_profile profile = plain();
  profile.delta = FA_DELTA_EXACT_O;
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile, .generic = true};
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  fa_ref_rows_init(&call, &call.entry[0], 0, 0, &r);
  double d_o[8], o[8] = {0}, delta[1] = {0};
  fa_want *w = &forward.t[FA_T_O];
  for (int x = 0; x < 8; ++x) d_o[x] = -0.25, w->quant[x] = 1, w->accum[x] = 0, w->noise[x] = 0x1p-10f;
  const fa_ref_scratch scratch = {.d_o = d_o, .o = o, .delta = delta};
  call.forward = &forward;
  const double got = fa_bound_delta(&call, &r, 0, &scratch, &b), want = 1.5 * call.lambda * sqrt(8) * 0x1p-12;
  CHECK_MSG(fabs(got - want) < 1e-3 * want, "%g, not %g", got, want);
  fa_ref_call_free(&call);
  fa_wants_free(&forward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- a row's dS ---- */

/* Two pairs of P 1/2, whose dP are these. */
typedef struct pairs {
  fa_bound_scratch b;
  float e[2], d[2], w[2], w2[2], we[2], g[2], g2[2], ge[2], terms[2], exact[2];
  bool lost[2];
} pairs;

static pairs *pairs_of(const fa_profile *profile, double unit_do, double dropout, double first,
                       double second) {
  static pairs x;
  const fa_problem p = {.scale = 1, .dropout = {.p = dropout}};
  const fa_ref_call c = {.p = &p, .profile = profile, .d = 1, .dv = 1};
  double s[2] = {0.5, 0.5}, dp[2] = {first, second}, z[2] = {1 / (1 - dropout), 1 / (1 - dropout)},
         delta[1] = {0};
  const fa_ref_scratch w = {.s = s, .dp = dp, .z = z, .delta = delta};
  x = (pairs){.b = {.unit_ds = 1, .unit_do = unit_do, .unit_v = 1}, .d = {0.75f, 0.75f}};
  x.b.e_logit = x.e, x.b.d = x.d, x.b.w = x.w, x.b.w2 = x.w2, x.b.we = x.we;
  x.b.g = x.g, x.b.g2 = x.g2, x.b.ge = x.ge, x.b.terms = x.terms, x.b.exact = x.exact, x.b.key_lost = x.lost;
  fa_bound_backward_row(&c, fa_rows_best(), &w, &x.b, 0, 2, 0, 2);
  return &x;
}

/* A dS that its type does not hold is infinite, of either sign; a type that dS is not rounded to has no say. */
static void test_beyond(void) {
  fa_profile profile = plain();
  profile.max_p = 0.25;
  const pairs *x = pairs_of(&profile, 1, 0, -1, 0.125);
  CHECK(x->ge[0] < 1 && !x->lost[0] && !x->b.row_lost[0]);
  profile.u_ds = 0x1p-9;
  x = pairs_of(&profile, 1, 0, -1, 0.125);
  CHECK(x->ge[0] == FA_GREATEST_WEIGHT && x->lost[0] && x->b.row_lost[0]);
  CHECK(x->ge[1] < 1 && !x->lost[1]);
}

/* dP is rounded, and with dropout again: to a type that holds less by dropout's factor. */
static void test_dropped_dp(void) {
  fa_profile once = plain(), twice = plain();
  once.u_p_in_ds = 0x1p-9, once.floor_p = 1;
  twice = once, twice.u_dp = 0x1p-4;
  const float less = pairs_of(&once, 1, 0.5, 1, 1)->ge[0];
  const float more = pairs_of(&twice, 1, 0.5, 1, 1)->ge[0] - less,
              whole = pairs_of(&twice, 1, 0, 1, 1)->ge[0];
  CHECK_MSG(fabsf(more - 0.125f) < 1e-3f, "%g", more); /* P 1/2, Z dP 2, twice 2^-4 of it */
  CHECK_MSG(fabsf(whole - pairs_of(&once, 1, 0, 1, 1)->ge[0] - 0.03125f) < 1e-3f, "%g", whole);
  twice.max_dp = 1;
  CHECK(!pairs_of(&twice, 1, 0, 1, 1)->b.overflows && pairs_of(&twice, 1, 0.5, 1, 1)->b.overflows);
}

/* A dO that its narrow type does not hold, though the sum is one of floats. */
static void test_large_do(void) {
  fa_profile profile = plain();
  profile.operand_max[FA_PRODUCT_DP] = 65504;
  CHECK(!pairs_of(&profile, 65536, 0, 1, 1)->b.overflows);
  CHECK(pairs_of(&profile, 131072, 0, 1, 1)->b.overflows);
}

/* Keys that an item meets later leave the sums of those before them. */
static void test_touch(void) {
  enum { WIDTH = 4, SIZE = 16 * WIDTH };
  static float x[8][SIZE];
  bool lost[16];
  const fa_ref_call c = {.d = WIDTH, .dv = WIDTH};
  fa_bound_scratch b = {.dk1 = x[0],
                        .dke = x[1],
                        .dk2 = x[2],
                        .dv1 = x[3],
                        .dve = x[4],
                        .dv2 = x[5],
                        .dk_terms = x[6],
                        .dv_exact = x[7],
                        .dk_lost = lost};
  for (int i = 0; i < 8 * SIZE; ++i) x[i / SIZE][i % SIZE] = 1;
  for (int j = 0; j < 16; ++j) lost[j] = true;
  fa_bound_backward_touch(&c, &b, 8, 12);
  for (int i = 0; i < 8 * SIZE; ++i) {
    const int key = i % SIZE / (i / SIZE < 6 ? WIDTH : 1);
    CHECK_MSG((x[i / SIZE][i % SIZE] == 0) == (key >= 8 && key < 12), "array %d, %d", i / SIZE, i % SIZE);
  }
  for (int j = 0; j < 16; ++j) CHECK(lost[j] == !(j >= 8 && j < 12));
}

/* ---- delta of products that are rounded to the element type ---- */

/* What rounding each of 64 products of 1/4 by 2^-8 adds to delta's bound, where delta is 16. */
static double rounded_products(bool generic) {
  enum { DV = 64 };
  static const fa_problem p = {.scale = 1};
  static const fa_tensors in;
  static const fa_tensor o;
  static const fa_bound_scratch b;
  static const fa_ref_rows r = {.n = 1};
  static double d_o[DV], of_o[DV], delta[] = {16};
  double bound[2];
  for (int x = 0; x < DV; ++x) d_o[x] = of_o[x] = 0.5;
  const fa_ref_scratch w = {.d_o = d_o, .o = of_o, .delta = delta};
  for (int rounds = 0; rounds < 2; ++rounds) {
    fa_profile profile = plain();
    profile.delta = FA_DELTA_STORED_O, profile.u_delta = rounds ? 0x1p-8 : 0;
    const fa_ref_call c = {
        .p = &p, .in = &in, .profile = &profile, .given_o = &o, .dv = DV, .lambda = 5, .generic = generic};
    bound[rounds] = fa_bound_delta(&c, &r, 0, &w, &b);
  }
  return bound[1] - bound[0];
}

/* Roundings that are not like noise may all have one sign: then lambda sqrt(n) of them is not enough. */
static void test_rounded_products(void) {
  const double all = 64 * 0x1p-10, noise = 5 * 8 * 0x1p-10;
  const double want[] = {1.0001 * (all + 0x1p-8 * (16 + all)), 1.0001 * (noise + 0x1p-8 * (16 + noise))};
  for (int generic = 0; generic < 2; ++generic) {
    const double got = rounded_products(generic);
    CHECK_MSG(fabs(got - want[generic]) < 1e-9, "generic %d: %.9g, not %.9g", generic, got, want[generic]);
  }
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

/* Which of dQ, dK and dV may overflow. */
typedef struct overflowing {
  bool dq, dk, dv;
} overflowing;

/* Of an element whose magnitudes' sum is `largest` units, summed in f16, of which each is 2^-10. */
static overflowing sums_of(float largest, double unit) {
  fa_profile profile = plain();
  for (int i = 0; i < FA_N_PRODUCTS; ++i) profile.accumulator[i] = FA_ACCUMULATOR_F16;
  overflowing which;
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
  b.unit_ds = b.unit_do = unit, b.unit_k = b.unit_q = 1, b.max_k = max_k;
  b.dq1 = sums, b.dqe = b.dq2 = zeros;
  fa_bound_backward_end(&call, &r, &b);
  which.dq = out.t[FA_T_DQ].accum[0] == INFINITY;
  const fa_backward_job job = {.c = &call};
  for (int x = 0; x < 8; ++x) out.t[FA_T_DK].quant[x] = out.t[FA_T_DV].quant[x] = largest;
  fa_bound_backward_finish(&job, &call.entry[0], 0, 0, 1, &b);
  which.dk = out.t[FA_T_DK].accum[0] == INFINITY;
  which.dv = out.t[FA_T_DV].accum[0] == INFINITY;
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return which;
}

static void test_sum_limits(void) {
  const overflowing below = sums_of(65504 * 1000, 0x1p-10); /* of units of 2^-10: 63969 */
  CHECK(!below.dq && !below.dk && !below.dv);
  const overflowing at = sums_of(65504 * 1024, 0x1p-10); /* at the limit, but that the sum is one of floats */
  CHECK(at.dq && at.dk && at.dv);
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

/* ---- merged parts ---- */

/* A part that has no weight left: its gradient of LSE may be off by what each product and sum loses that is flushed. */
static void test_weightless_part(void) {
  enum { WIDTH = 8 };
  const fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of(
      "{\"family\":\"merge\",\"dtype\":\"f32\",\"seqlen_q\":1,\"head_dim\":8,\"merge\":{\"parts\":2}}", &in);
  const fa_tensor *lse = &in.t[FA_T_LSE_PARTS];
  fa_tensor_set(lse, (int64_t[FA_MAX_RANK]){0}, 0);
  fa_tensor_set(lse, (int64_t[FA_MAX_RANK]){1}, -5000);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *w = &backward.t[FA_T_DLSE_PARTS];
  REQUIRE(w->n == 2);
  CHECK_MSG(w->value[1] == 0 && w->accum[1] >= (float)(0x1p-126 * (1 + WIDTH)), "%g, %g", w->value[1],
            w->accum[1]);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- units ---- */

/* The unit of dLSE, of a case whose row `loud` is 1000 if there is one. *most: the largest element. */
static double unit_of_dlse(const char *text, int64_t loud, double *most) {
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_bound_scratch b;
  fa_case c = case_of(text, &in);
  const fa_profile profile = fa_profile_get("simt-f32", c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  if (loud >= 0) fa_tensor_set(&in.t[FA_T_DLSE], (int64_t[FA_MAX_RANK]){0, 0, loud}, 1000);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_bound_scratch_init(&b, &call, true, NULL, NULL) == FA_OK);
  *most = 0;
  for (int64_t i = 0; i < c.problem.seqlen_q; ++i)
    *most = fmax(*most, fabs(fa_tensor_get(&in.t[FA_T_DLSE], (int64_t[FA_MAX_RANK]){0, 0, i})));
  const double unit = b.unit_dlse;
  fa_bound_scratch_free(&b);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return unit;
}

static void test_dlse(void) {
  double most;
  const double unit =
      unit_of_dlse("{\"seqlen_q\":9,\"seqlen_k\":12,\"head_dim\":8,\"grad_lse\":true}", -1, &most);
  CHECK_MSG(most > 0 && unit >= most && unit <= 4 * most, "%g, %g", unit, most);
}

/* The largest element may be the last of a long row of dLSE. */
static void test_long_dlse(void) {
  double most;
  const double unit =
      unit_of_dlse("{\"seqlen_q\":1100,\"seqlen_k\":2,\"head_dim\":8,\"grad_lse\":true}", 1099, &most);
  CHECK_MSG(unit == 1024 && most == 1000, "%g, %g", unit, most);
}

/* What lies in memory behind a short row of Q is not of it. */
static void test_short_rows(void) {
  enum { D = 8, ROOM = 2048 };
  static float room[ROOM];
  const fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_bound_scratch b;
  fa_case c = case_of("{\"dtype\":\"f32\",\"seqlen_q\":1,\"seqlen_k\":2,\"head_dim\":8}", &in);
  for (int x = 0; x < ROOM; ++x) room[x] = x < D ? 3 : 1e6f;
  const fa_tensor q = in.t[FA_T_Q];
  in.t[FA_T_Q].data = (char *)room;
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_bound_scratch_init(&b, &call, false, NULL, NULL) == FA_OK);
  CHECK_MSG(b.unit_q >= 3 && b.unit_q <= 8, "%g", b.unit_q);
  in.t[FA_T_Q] = q;
  fa_bound_scratch_free(&b);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* A dO that its narrow type does not hold leaves no bound of dV, but of a key that no row sees: that is 0. */
static void test_unseen_key(void) {
  fa_profile profile = fa_profile_get("simt-f32", FA_F32);
  profile.operand_max[FA_PRODUCT_DV] = 65504;
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c =
      case_of("{\"dtype\":\"f32\",\"seqlen_q\":2,\"seqlen_k\":5,\"head_dim\":8,\"mask\":{\"type\":\"causal\","
              "\"align\":\"top_left\"}}",
              &in);
  fa_tensor_set(&in.t[FA_T_DO], (int64_t[FA_MAX_RANK]){0}, 1e6);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *dv = &backward.t[FA_T_DV];
  for (int64_t e = 0; e < 5 * 8; ++e)
    CHECK_MSG(isinf(dv->accum[e]) == (e < 2 * 8), "%lld: %g", (long long)e, dv->accum[e]);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_unknown();
  test_exponents();
  test_own_keys();
  test_spread();
  test_alike();
  test_restored();
  test_no_scale();
  test_large_queries();
  test_hidden_score();
  test_small_operands();
  test_low_cap();
  test_delta();
  test_delta_of_o();
  test_rounded_products();
  test_beyond();
  test_dropped_dp();
  test_large_do();
  test_touch();
  test_cancelled();
  test_chunks();
  test_sum_limits();
  test_added();
  test_dlse();
  test_long_dlse();
  test_weightless_part();
  test_short_rows();
  test_unseen_key();
  return check_done();
}
