/* Errors that all pairs of a row share, and rows about which nothing is known: what such a kernel computes must be within
 * the bounds of its arithmetic. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

static void put(fa_tensors *t, fa_tensor_id id, int64_t row, double value) {
  fa_tensor_set(&t->t[id], (int64_t[FA_MAX_RANK]){0, row, 0, 0}, value);
}
static double at(const fa_tensors *t, fa_tensor_id id, int64_t row) {
  return fa_tensor_get(&t->t[id], (int64_t[FA_MAX_RANK]){0, row, 0, 0});
}

/* x as tf32 has it, to nearest. */
static double tf32(double x) {
  int exponent;
  frexp(x, &exponent);
  const double step = ldexp(1.0, exponent - 11);
  return rint(x / step) * step;
}

static double lse_of(const fa_tensors *t, double q, double scale, int64_t keys, bool rounded, double cap) {
  double sum = 0;
  for (int64_t j = 0; j < keys; ++j) {
    const double k = at(t, FA_T_K, j), x = scale * (rounded ? tf32(q) * tf32(k) : q * k);
    sum += exp(cap > 0 ? cap * tanh(x / cap) : x);
  }
  return log(sum);
}

/* One dimension, queries and keys just beyond the middle between two tf32 numbers: the query's rounding moves all scores of
 * a row to the same side. The worst row must be within the bound, and near it. */
static void queries_of_few_bits(const char *text) {
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward;
  double worst = 0;
  REQUIRE(fa_case_from_text(text, &c, NULL) == FA_OK && fa_case_build(&c, &t, NULL) == FA_OK);
  REQUIRE(fa_arithmetic_named("mma-sm80", FA_F32, &a));
  for (int64_t i = 0; i < c.problem.seqlen_q; ++i) put(&t, FA_T_Q, i, 2 + (i % 7) * 0.25 + 0x1.1p-11);
  for (int64_t j = 0; j < c.problem.seqlen_k; ++j) put(&t, FA_T_K, j, 1 + 0.25 * (double)(j % 4));
  const fa_profile profile = fa_arithmetic_profile(&a, FA_F32);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  const fa_want *w = &forward.t[FA_T_LSE];
  for (int64_t i = 0; i < c.problem.seqlen_q; ++i) {
    const double got =
        lse_of(&t, at(&t, FA_T_Q, i), c.problem.scale, c.problem.seqlen_k, true, c.problem.softcap);
    worst = fmax(worst, fabs(got - w->value[i]) / fa_want_bound(w, i));
  }
  CHECK_MSG(worst <= 1 && worst > 0.2, "%s: LSE is off by %g of the bound", text, worst);
  fa_wants_free(&forward);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* A row of one key: P is 1, whatever its score. Where scores are summed in bf16, the LSE that comes with it is so far
 * from the right score that exp(score - LSE) is anything; a kernel that repeats its own scores gets 1. off: how far. */
static void unknown_weights(double off) {
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward, backward;
  REQUIRE(fa_case_from_text("{\"dtype\":\"f16\",\"seqlen_q\":1,\"head_dim\":1,\"scale\":1}", &c, NULL) ==
          FA_OK);
  REQUIRE(fa_case_build(&c, &t, NULL) == FA_OK);
  REQUIRE(fa_arithmetic_named("simt-f32", FA_F16, &a));
  for (int i = 0; i < FA_N_PRODUCTS; ++i) a.accumulator[i] = FA_ACCUMULATOR_BF16;
  put(&t, FA_T_Q, 0, 512);
  put(&t, FA_T_K, 0, 512);
  put(&t, FA_T_DO, 0, 1);
  put(&t, FA_T_O, 0, at(&t, FA_T_V, 0));
  fa_tensor_set(&t.t[FA_T_LSE], (int64_t[FA_MAX_RANK]){0, 0, 0}, 262144.0 + off);
  const fa_profile profile = fa_arithmetic_profile(&a, FA_F16);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &t, &t.t[FA_T_O], &t.t[FA_T_LSE], &forward, &opt, &backward, NULL) ==
          FA_OK);
  const fa_want *w = &backward.t[FA_T_DV];
  CHECK_MSG(fabs(1 - w->value[0]) <= fa_want_bound(w, 0), "LSE off by %g: dV is 1, want %g, bound %g", off,
            w->value[0], fa_want_bound(w, 0));
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* A scale of 0 makes nothing of a sum that has overflown before: inf times 0 is NaN, and no element has a bound. */
static void overflow_without_scale(const char *text, fa_tensor_id large, fa_tensor_id id) {
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward, backward;
  REQUIRE(fa_case_from_text(text, &c, NULL) == FA_OK && fa_case_build(&c, &t, NULL) == FA_OK);
  REQUIRE(fa_arithmetic_named("simt-f32", FA_BF16, &a));
  for (int64_t i = 0; i < 9; ++i) put(&t, large, i, 57344);
  for (int i = 0; i < FA_N_PRODUCTS; ++i) a.accumulator[i] = FA_ACCUMULATOR_F16;
  const fa_profile profile = fa_arithmetic_profile(&a, FA_BF16);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &t, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *w = &backward.t[id];
  int64_t bounded = 0;
  for (int64_t e = 0; e < w->n; ++e) bounded += !(fa_want_bound(w, e) == INFINITY);
  CHECK_MSG(bounded == 0, "%s of %s: %lld elements have a bound or NaN", fa_tensor_id_name(id), text,
            (long long)bounded);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* Two heads of a group, one row and one key: dV is the sum of dO, and each part of it may be rounded to a whole number of the
 * smallest f16. dO of half of it in both heads comes out as 0 or as two. */
static void subnormal_parts(void) {
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward, backward;
  REQUIRE(fa_case_from_text(
              "{\"dtype\":\"f16\",\"seqlen_q\":1,\"seqlen_k\":2,\"heads_q\":2,\"heads_kv\":1,\"head_dim\":1,"
              "\"scale\":0}",
              &c, NULL) == FA_OK);
  REQUIRE(fa_case_build(&c, &t, NULL) == FA_OK && fa_arithmetic_named("simt-f32", FA_F16, &a));
  a.gqa_partials_rounded = true;
  for (int64_t h = 0; h < 2; ++h) /* of each key's P, 1/2, that is half the smallest number */
    fa_tensor_set(&t.t[FA_T_DO], (int64_t[FA_MAX_RANK]){0, 0, h, 0}, 0x1p-24);
  const fa_profile profile = fa_arithmetic_profile(&a, FA_F16);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &t, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *w = &backward.t[FA_T_DV];
  CHECK_MSG(w->value[0] == 0x1p-24 && fa_want_bound(w, 0) >= 0x1p-24 && fa_want_bound(w, 0) < 0x1p-22,
            "dV of rounded parts: want %g, bound %g", w->value[0], fa_want_bound(w, 0));
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

/* A case of one head and one dimension as a subject computes it that rounds every result to float16. Between: set the data. */
typedef struct eager {
  fa_case c;
  fa_tensors t;
  fa_wants forward, backward;
} eager;

static void eager_begin(eager *x, const char *text) {
  REQUIRE(fa_case_from_text(text, &x->c, NULL) == FA_OK && fa_case_build(&x->c, &x->t, NULL) == FA_OK);
}

static void eager_judge(eager *x) {
  fa_arithmetic a;
  REQUIRE(fa_arithmetic_named("torch-eager", FA_F16, &a));
  const fa_profile profile = fa_arithmetic_profile(&a, FA_F16);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  REQUIRE(fa_ref_forward(&x->c.problem, &x->t, &opt, &x->forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&x->c.problem, &x->t, NULL, NULL, &x->forward, &opt, &x->backward, NULL) == FA_OK);
}

static void eager_free(eager *x) {
  fa_wants_free(&x->forward);
  fa_wants_free(&x->backward);
  fa_tensors_free(&x->t);
  fa_case_free(&x->c);
}

/* Each sequence's dS is 0.57 of the smallest number, and rounds up to it before it is added to the other's. */
static void subnormal_bias_gradients(void) {
  eager x;
  eager_begin(&x, "{\"family\":\"memeff\",\"dtype\":\"f16\",\"batch\":2,\"seqlen_q\":1,\"seqlen_k\":64,"
                  "\"head_dim\":1,\"scale\":0,\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true},"
                  "\"fill\":{\"v\":\"zero\",\"bias\":\"zero\"}}");
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t first[FA_MAX_RANK] = {b};
    fa_tensor_set(&x.t.t[FA_T_V], first, 37 * 0x1p-24);
    fa_tensor_set(&x.t.t[FA_T_DO], first, 1);
  }
  eager_judge(&x);
  const fa_want *w = &x.backward.t[FA_T_DBIAS];
  const double off = fabs(2 * 0x1p-24 - w->value[0]), bound = fa_want_bound(w, 0);
  CHECK_MSG(off > 0.8 * 0x1p-24 && off <= bound && bound < 2 * 0x1p-24,
            "dBias of rounded parts: want %g, bound %g", w->value[0], bound);
  eager_free(&x);
}

/* Scores are infinite before they are scaled: P is NaN in every row that sees the key, and so is dV of all keys; here
 * that is the last row alone. */
static void infinite_scores(double q, bool bounded) {
  eager x;
  eager_begin(&x, "{\"dtype\":\"f16\",\"seqlen_q\":3,\"head_dim\":1,\"scale\":0.0009765625,"
                  "\"mask\":{\"type\":\"causal\"}}");
  put(&x.t, FA_T_Q, 2, q);
  put(&x.t, FA_T_K, 2, 65504);
  eager_judge(&x);
  const fa_want *o = &x.forward.t[FA_T_O], *dv = &x.backward.t[FA_T_DV];
  CHECK(isfinite(fa_want_bound(o, 1)) && isfinite(fa_want_bound(o, 2)) == bounded);
  for (int64_t j = 0; j < 3; ++j)
    CHECK_MSG(isfinite(fa_want_bound(dv, j)) == bounded, "dV of key %lld, q %g: bound %g", (long long)j, q,
              fa_want_bound(dv, j));
  eager_free(&x);
}

int main(void) {
  subnormal_parts();
  subnormal_bias_gradients();
  infinite_scores(-2, false);
  infinite_scores(-0.5, true);
  queries_of_few_bits("{\"dtype\":\"f32\",\"seqlen_q\":14,\"seqlen_k\":600,\"head_dim\":1}");
  queries_of_few_bits("{\"dtype\":\"f32\",\"seqlen_q\":14,\"seqlen_k\":4000,\"head_dim\":1,\"softcap\":20}");
  unknown_weights(20);
  unknown_weights(120);
  unknown_weights(500);
  unknown_weights(900);
  static const char zero[] = "{\"dtype\":\"bf16\",\"seqlen_q\":9,\"seqlen_k\":12,\"scale\":0}";
  static const char idle[] = "{\"dtype\":\"bf16\",\"seqlen_q\":9,\"seqlen_k\":12,\"scale\":0,\"fill\":{"
                             "\"default\":\"normal\",\"do\":\"zero\"}}";
  static const char bias[] = "{\"family\":\"memeff\",\"dtype\":\"bf16\",\"seqlen_q\":9,\"seqlen_k\":12,"
                             "\"scale\":0,\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true}}";
  overflow_without_scale(zero, FA_T_DO, FA_T_DQ); /* dP overflows, or dS K */
  overflow_without_scale(zero, FA_T_DO, FA_T_DK);
  overflow_without_scale(zero, FA_T_K, FA_T_DQ);
  overflow_without_scale(idle, FA_T_V, FA_T_DK); /* dO is 0, and O infinite */
  overflow_without_scale(idle, FA_T_V, FA_T_DQ);
  overflow_without_scale(bias, FA_T_DO, FA_T_DBIAS);
  return check_done();
}
