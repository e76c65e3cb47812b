/* The bound of a buffer's gradient grows with the number of pairs that read the element, over all heads and entries: each
 * is one more addition in f32. Two heads with the same data double the value and the sizes of the terms; their sum is in
 * doubt by more than twice as much as one head's. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/engine/dropout.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

#define CASE                                                                                                 \
  "{\"heads_q\":%d,\"heads_kv\":%d,\"batch\":%d,\"seqlen_q\":40,\"seqlen_k\":60,"                            \
  "\"score_mod\":\"score + bumps[0] * (kv_idx %% 3)\",\"buffers\":{\"bumps\":{\"shape\":[1]}},"              \
  "\"strides\":{\"q\":{\"expand\":[\"b\",\"h\"]},\"k\":{\"expand\":[\"b\",\"h\"]},"                          \
  "\"v\":{\"expand\":[\"b\",\"h\"]},\"do\":{\"expand\":[\"b\",\"h\"]}}}"

typedef struct element {
  double value, accum;
} element;

/* The backward pass of a case. */
static fa_wants gradients_of(const char *text) {
  fa_case c;
  fa_tensors t;
  fa_arithmetic a;
  fa_wants forward, backward;
  REQUIRE(fa_case_from_text(text, &c, NULL) == FA_OK && fa_case_build(&c, &t, NULL) == FA_OK);
  REQUIRE(fa_arithmetic_named("torch-math", FA_F16, &a));
  const fa_profile profile = fa_arithmetic_profile(&a, FA_F16);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &t, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  fa_wants_free(&forward);
  fa_tensors_free(&t);
  fa_case_free(&c);
  return backward;
}

static element gradient(int heads, int batch) {
  char text[600];
  snprintf(text, sizeof text, CASE, heads, heads, batch);
  fa_wants backward = gradients_of(text);
  const fa_want *w = &backward.t[FA_T_DBUFFER_0];
  const element found = {w->value[0], (double)w->accum[0]};
  fa_wants_free(&backward);
  return found;
}

static void check_twice(int heads, int batch) {
  const element one = gradient(1, 1), two = gradient(heads, batch);
  CHECK_MSG(one.value != 0 && two.value == 2 * one.value, "the same data twice: %g, %g", one.value,
            two.value);
  CHECK_MSG(two.accum > 2.0001 * one.accum,
            "%d heads, %d entries: bound %g of twice as many terms, %g of one", heads, batch, two.accum,
            one.accum);
}

/* Those of a case of two entries, whose score_mod reads a buffer x. */
static fa_wants gradients_with(const char *buffer, const char *read) {
  char text[600];
  snprintf(
      text, sizeof text,
      "{\"family\":\"flex\",\"batch\":2,\"seqlen_q\":20,\"seqlen_k\":30,\"score_mod\":\"score + 0.5 * %s\","
      "\"buffers\":{\"x\":%s}}",
      read, buffer);
  return gradients_of(text);
}

/* Each element of the shape has a gradient of its own, also where a stride of 0 makes them one in memory: along that axis
 * they add up to the gradient of the one element. */
static void check_expanded(void) {
  fa_wants each = gradients_with("{\"shape\":[2,30],\"strides\":[0,1]}", "x[b, kv_idx]"),
           one = gradients_with("{\"shape\":[30]}", "x[kv_idx]");
  const fa_want *e = &each.t[FA_T_DBUFFER_0], *o = &one.t[FA_T_DBUFFER_0];
  REQUIRE(e->n == 60 && o->n == 30);
  for (int i = 0; i < 30; ++i) {
    const double sum = e->value[i] + e->value[30 + i];
    CHECK_MSG(e->value[i] != e->value[30 + i] && fabs(sum - o->value[i]) <= 1e-12, "%d: %g, not %g", i, sum,
              o->value[i]);
  }
  fa_wants_free(&each);
  fa_wants_free(&one);
}

/* A gradient in 16 bits may be half an ulp of that type further off, and no more. */
static void check_rounding(const char *dtype, fa_dtype type) {
  char buffer[80];
  snprintf(buffer, sizeof buffer, "{\"shape\":[30],\"dtype\":\"%s\",\"strides\":[3]}", dtype);
  fa_wants w = gradients_with(buffer, "x[kv_idx]");
  const fa_want *d = &w.t[FA_T_DBUFFER_0];
  REQUIRE(d->n == 30 && d->dtype == type);
  for (int i = 0; i < 30; ++i) {
    const double half = fa_half_ulp(type, d->value[i]), accum = (double)d->accum[i],
                 bound = fa_want_bound(d, i);
    CHECK_MSG(bound >= half + accum && bound < 2.1 * half + 2 * accum, "%s %d: %g, half an ulp %g, sum %g",
              dtype, i, bound, half, accum);
  }
  fa_wants_free(&w);
}

/* A key whose values are the same in every two columns, which dO subtracts from each other: P (dP - delta) is exactly 0, and in
 * doubt. So it is where dropout drops the pair, which reads its element all the same. */
static void check_dropped(void) {
  fa_case c;
  fa_tensors t;
  fa_wants forward, backward;
  const fa_profile profile = fa_profile_get("simt-f32", FA_F16);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_case_from_text(
              "{\"seqlen_q\":1,\"seqlen_k\":30,\"head_dim\":8,\"dropout\":{\"p\":0.5,\"seed\":\"5\"},"
              "\"score_mod\":\"score + x[kv_idx]\",\"buffers\":{\"x\":{\"shape\":[30]}}}",
              &c, NULL) == FA_OK);
  REQUIRE(fa_case_build(&c, &t, NULL) == FA_OK);
  for (int64_t x = 0; x < 8; ++x)
    fa_tensor_set(&t.t[FA_T_DO], (int64_t[FA_MAX_RANK]){0, 0, 0, x}, x % 2 ? -1 : 1);
  for (int64_t j = 0; j < 30; ++j)
    for (int64_t x = 1; x < 8; x += 2)
      fa_tensor_set(&t.t[FA_T_V], (int64_t[FA_MAX_RANK]){0, j, 0, x},
                    fa_tensor_get(&t.t[FA_T_V], (int64_t[FA_MAX_RANK]){0, j, 0, x - 1}));
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &t, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *w = &backward.t[FA_T_DBUFFER_0];
  int kept = 0;
  REQUIRE(w->n == 30);
  for (int j = 0; j < 30; ++j) {
    kept += fa_ref_dropout_keep(&c.problem, 0, 0, 0, j);
    CHECK_MSG(w->value[j] == 0 && w->accum[j] > 0 && w->accum[j] < INFINITY, "%d: %g +- %g", j, w->value[j],
              (double)w->accum[j]);
  }
  CHECK(kept > 5 && kept < 25);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

int main(void) {
  check_dropped();
  check_expanded();
  check_rounding("f16", FA_F16);
  check_rounding("bf16", FA_BF16);
  check_twice(2, 1);
  check_twice(1, 2);
  return check_done();
}
