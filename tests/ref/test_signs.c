/* A negative scale is a positive one with the other sign of Q: the same values, and the same bounds, whatever the arithmetic. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

#define SIZES "\"head_dim\":16,\"heads_q\":2,\"seqlen_q\":30,\"seqlen_k\":40,\"scale\":0.3"

static const char *const cases[] = {
    "{" SIZES "}",
    "{" SIZES ",\"softcap\":2,\"mask\":{\"type\":\"causal\"}}",
    "{" SIZES ",\"dtype\":\"bf16\",\"dropout\":{\"p\":0.2,\"seed\":\"3\"},\"sinks\":true}",
    "{" SIZES
    ",\"dtype\":\"f32\",\"family\":\"memeff\",\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"],\"grad\":true}}",
};

typedef struct result {
  fa_wants forward, backward;
} result;

static result run(const fa_problem *p, const fa_tensors *in, const fa_profile *profile, bool generic) {
  const fa_ref_options opt = {.n_threads = 1, .profile = profile, .generic = generic};
  result r = {0};
  REQUIRE(fa_ref_forward(p, in, &opt, &r.forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(p, in, NULL, NULL, &r.forward, &opt, &r.backward, NULL) == FA_OK);
  return r;
}

static void free_result(result *r) {
  fa_wants_free(&r->forward);
  fa_wants_free(&r->backward);
}

static void negate(const fa_tensor *t) {
  for (int64_t e = 0; e < fa_tensor_count(t); ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(t, e, at);
    fa_tensor_set(t, at, -fa_tensor_get(t, at));
  }
}

static bool is_near(double a, double b) {
  return a == b || fabs(a - b) <= 1e-6 * fabs(b);
}

/* All but dQ, which has the other sign. */
static void compare(const char *set, int n, const fa_wants *a, const fa_wants *b) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_want *x = &a->t[id], *y = &b->t[id];
    const double sign = id == FA_T_DQ ? -1 : 1;
    REQUIRE(x->n == y->n);
    int64_t bad = 0;
    for (int64_t e = 0; e < x->n; ++e)
      bad += !(x->value[e] == sign * y->value[e] && is_near(fa_want_bound(x, e), fa_want_bound(y, e)));
    CHECK_MSG(bad == 0, "%s, case %d: %lld elements of %s", set, n, (long long)bad,
              fa_tensor_id_name((fa_tensor_id)id));
  }
}

static void test_case(int n, const char *set) {
  fa_case c;
  fa_tensors in;
  fa_arithmetic a;
  REQUIRE(fa_case_from_text(cases[n], &c, NULL) == FA_OK && fa_case_build(&c, &in, NULL) == FA_OK);
  if (fa_arithmetic_named(set, c.problem.dtype, &a)) {
    const fa_profile profile = fa_arithmetic_profile(&a, c.problem.dtype);
    for (int generic = 0; generic < 2; ++generic) {
      result plain = run(&c.problem, &in, &profile, generic);
      c.problem.scale = -c.problem.scale;
      negate(&in.t[FA_T_Q]);
      result other = run(&c.problem, &in, &profile, generic);
      compare(set, n, &plain.forward, &other.forward);
      compare(set, n, &plain.backward, &other.backward);
      free_result(&plain);
      free_result(&other);
    }
  }
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  for (int i = 0; fa_arithmetic_name(i); ++i)
    for (int n = 0; n < (int)(sizeof cases / sizeof *cases); ++n) test_case(n, fa_arithmetic_name(i));
  return check_done();
}
