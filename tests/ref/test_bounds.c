/* The bounds hold for a float32 kernel of every kind, are close to its errors, and reveal small faults. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "gpu/backend.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

typedef struct run {
  fa_case c;
  fa_tensors t;
  fa_wants want[2]; /* forward, backward */
} run;

static const fa_tensor_id judged[] = {FA_T_O, FA_T_LSE, FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS};

static const fa_want *want_of(const run *r, fa_tensor_id id) {
  return &r->want[id == FA_T_O || id == FA_T_LSE ? 0 : 1].t[id];
}

/* Largest err / bound of one output; inf if an error exceeds a bound of 0 or a class differs. */
static double worst_ratio(const run *r, fa_tensor_id id) {
  const fa_want *w = want_of(r, id);
  double worst = 0;
  for (int64_t n = 0; n < w->n; ++n) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(&r->t.t[id], n, index);
    double got = fa_tensor_get(&r->t.t[id], index), err = fabs(got - w->value[n]);
    if (got == w->value[n]) continue;
    double bound = fa_want_bound(w, n), ratio = err / bound;
    worst = ratio <= worst ? worst : isnan(ratio) ? INFINITY : ratio;
  }
  return worst;
}

static void run_free(run *r) {
  fa_wants_free(&r->want[0]);
  fa_wants_free(&r->want[1]);
  fa_tensors_free(&r->t);
  fa_case_free(&r->c);
}

/* ref-f32 runs the case after `fault` changed the problem; the reference judges the original. */
static void run_case(const char *json, void (*fault)(fa_problem *p), bool end_to_end, run *r) {
  const fa_backend *f32 = &fa_backend_ref_f32;
  fa_error err = {""};
  fa_outcome outcome;
  fa_problem changed;
  void *self = NULL;
  memset(r, 0, sizeof *r);
  REQUIRE(fa_case_from_text(json, &r->c, &err) == FA_OK && fa_case_build(&r->c, &r->t, &err) == FA_OK);
  const fa_problem *p = &r->c.problem;
  REQUIRE(fa_problem_copy(&changed, p) == FA_OK && f32->open(NULL, &self, &err) == FA_OK);
  if (fault) fault(&changed);
  fa_run_options how = {.passes = p->backward ? FA_PASS_FORWARD | FA_PASS_BACKWARD : FA_PASS_FORWARD,
                        .n_threads = 1};
  REQUIRE(f32->run(self, &changed, &r->t, &how, &outcome, &err) == FA_OK && outcome.state == FA_SUBJECT_OK);
  fa_profile profile;
  f32->profile(self, p, &profile);
  fa_ref_options opt = {.n_threads = 2, .profile = &profile, .generic = fa_case_is_generic(&r->c)};
  REQUIRE(fa_ref_forward(p, &r->t, &opt, &r->want[0], &err) == FA_OK);
  if (p->backward)
    REQUIRE(fa_ref_backward(p, &r->t, end_to_end ? NULL : &r->t.t[FA_T_O],
                            end_to_end ? NULL : &r->t.t[FA_T_LSE], &r->want[0], &opt, &r->want[1],
                            &err) == FA_OK);
  f32->close(self);
  fa_problem_free(&changed);
}

static void holds(const char *json) {
  for (int end_to_end = 0; end_to_end < 2; ++end_to_end) {
    run r;
    run_case(json, NULL, end_to_end, &r);
    for (int n = 0; n < 6; ++n) {
      double worst = worst_ratio(&r, judged[n]);
      CHECK_MSG(worst <= 1, "%s %s %g", json, fa_tensor_id_name(judged[n]), worst);
    }
    run_free(&r);
  }
}

/* A 16-bit kernel's largest error is a good part of its bound, so the bound is not too wide. */
static void close_to(const char *json, double least) {
  run r;
  run_case(json, NULL, false, &r);
  for (int n = 0; n < 5; ++n) {
    double worst = worst_ratio(&r, judged[n]);
    if (judged[n] != FA_T_LSE) CHECK_MSG(worst >= least, "%s %g", fa_tensor_id_name(judged[n]), worst);
  }
  run_free(&r);
}

static void scale_off(fa_problem *p) {
  p->scale *= 1 + 0x1p-10;
}
static void window_off(fa_problem *p) {
  p->mask.left += 1;
}
static void cap_off(fa_problem *p) {
  p->softcap *= 1 + 0x1p-8;
}

static void sees(const char *json, void (*fault)(fa_problem *p), fa_tensor_id id) {
  run r;
  run_case(json, fault, false, &r);
  double worst = worst_ratio(&r, id);
  CHECK_MSG(worst > 2, "%s %s %g", json, fa_tensor_id_name(id), worst);
  run_free(&r);
}

/* One element of each output, wrong by a few bounds. */
static void sees_planted(const char *json) {
  run r;
  run_case(json, NULL, false, &r);
  for (int n = 0; n < 6; ++n) {
    const fa_want *w = want_of(&r, judged[n]);
    fa_tensor *t = &r.t.t[judged[n]];
    int64_t index[FA_MAX_RANK], at = w->n / 3;
    fa_tensor_unravel(t, at, index);
    fa_tensor_set(t, index, w->value[at] + 4 * fa_want_bound(w, at));
    CHECK_MSG(worst_ratio(&r, judged[n]) > 2, "%s", fa_tensor_id_name(judged[n]));
  }
  run_free(&r);
}

/* Fully masked rows, and keys that no row sees: the bound is exactly 0. */
static void zero_is_exact(void) {
  run r;
  run_case("{\"seqlen_q\":40,\"seqlen_k\":24,\"mask\":{\"type\":\"window\",\"left\":0,\"right\":0},\"leftpad_"
           "k\":[3]}",
           NULL, false, &r);
  const fa_want *o = want_of(&r, FA_T_O), *dk = want_of(&r, FA_T_DK);
  for (int64_t n = 0; n < o->n; ++n) CHECK((fa_want_bound(o, n) == 0) == (n / 64 < 40 - 21));
  for (int64_t n = 0; n < dk->n; ++n) CHECK((fa_want_bound(dk, n) == 0) == (n / 64 < 3));
  run_free(&r);
}

#define LONG "\"heads_q\":2,\"seqlen_q\":200,\"seqlen_k\":333"

/* The bound of a row's LSE in a unit that rounds small operands of the scores to multiples of 2 floor. */
static double lse_bound_with(double floor) {
  fa_case c;
  fa_tensors t;
  fa_wants forward;
  fa_arithmetic a;
  fa_error err = {""};
  REQUIRE(fa_case_from_text("{\"dtype\":\"f16\",\"seqlen_q\":1,\"seqlen_k\":1,\"head_dim\":64}", &c, &err) ==
              FA_OK &&
          fa_case_build(&c, &t, &err) == FA_OK);
  for (int64_t d = 0; d < 64; ++d) {
    fa_tensor_set(&t.t[FA_T_Q], (int64_t[FA_MAX_RANK]){0, 0, 0, d}, 0x1p-14);
    fa_tensor_set(&t.t[FA_T_K], (int64_t[FA_MAX_RANK]){0, 0, 0, d}, 0x1p-14);
  }
  REQUIRE(fa_arithmetic_named("mma-sm80", FA_F16, &a));
  fa_profile profile = fa_arithmetic_profile(&a, FA_F16);
  profile.operand_floor[FA_PRODUCT_QK] = floor;
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &t, &opt, &forward, &err) == FA_OK);
  const double bound = fa_want_bound(&forward.t[FA_T_LSE], 0);
  fa_wants_free(&forward);
  fa_tensors_free(&t);
  fa_case_free(&c);
  return bound;
}

/* What is lost of an operand counts as much as the largest number that it is multiplied by, here 2^-13 at most. */
static void small_operands_lose_little(void) {
  const double lost = lse_bound_with(0x1p-15) - lse_bound_with(0);
  CHECK_MSG(lost > 0 && lost < 64 * 0.125 * 2 * 0x1p-13 * 0x1p-15 * 1.01, "%g", lost);
}

int main(void) {
  small_operands_lose_little();
  holds("{" LONG ",\"mask\":{\"type\":\"causal\"}}");
  holds("{\"dtype\":\"bf16\"," LONG ",\"heads_kv\":1,\"softcap\":2,\"alibi\":{\"slopes\":\"standard\"}}");
  holds("{\"dtype\":\"f32\"," LONG ",\"dropout\":{\"p\":0.3,\"seed\":\"1\"},\"fill\":\"logits_64x\"}");
  holds("{\"family\":\"memeff\"," LONG
        ",\"head_dim_v\":24,\"bias\":{\"shape\":[1,1,1,\"k\"]},\"fill\":\"v_offset\"}");
  holds("{\"family\":\"memeff\",\"dtype\":\"bf16\"," LONG ",\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"]},"
        "\"fill\":{\"default\":\"duplicate_keys\",\"bias\":\"neg_inf_rows\"}}");
  holds("{\"dtype\":\"f32\"," LONG ",\"fill\":\"denormal\"}");
  holds("{\"dtype\":\"f16\"," LONG ",\"fill\":\"near_max\"}");
  holds("{\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":96,\"splits\":3,\"mask\":{\"type\":"
        "\"causal\"},"
        "\"kvcache\":{\"len\":[5,70],\"new\":4,\"rotary\":{\"dim\":32}}}");
  close_to("{" LONG "}", 0.2);
  close_to("{\"dtype\":\"bf16\"," LONG ",\"mask\":{\"type\":\"causal\"}}", 0.2);
  sees("{\"dtype\":\"bf16\"," LONG "}", scale_off, FA_T_LSE);
  sees("{" LONG ",\"softcap\":3}", cap_off, FA_T_LSE);
  sees("{" LONG ",\"mask\":{\"type\":\"window\",\"left\":40,\"right\":0}}", window_off, FA_T_O);
  sees_planted("{\"family\":\"memeff\"," LONG ",\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"]}}");
  zero_is_exact();
  return check_done();
}
