/* Every named arithmetic over every feature that bounds treat on its own: a bound may be infinite where nothing is
 * known, but it is never NaN or negative, and where nothing overflows most elements have a finite one. */
#include "cases/arithmetic/fields.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <math.h>

static const char *const cases[] = {
    "{\"mask\":{\"type\":\"causal\"},\"seqlen_q\":70,\"seqlen_k\":90}",
    "{\"family\":\"flex\",\"mask_mod\":\"q_idx >= kv_idx\",\"seqlen_q\":70,\"seqlen_k\":90}",
    "{\"family\":\"flex\",\"mask_mod\":\"kv_idx < 40\",\"alibi\":{\"slopes\":[1]},\"seqlen_k\":70}",
    "{\"family\":\"flex\",\"mask_mod\":\"kv_idx < 40\",\"bias\":{},\"seqlen_q\":40,\"seqlen_k\":70}",
    "{\"family\":\"flex\",\"score_mod\":\"score + 0.1 * (q_idx - kv_idx)\",\"seqlen_q\":33,\"seqlen_k\":65}",
    "{\"softcap\":3,\"alibi\":{\"slopes\":\"standard\"},\"seqlen_q\":40,\"seqlen_k\":40,\"heads_q\":2}",
    "{\"family\":\"memeff\",\"bias\":{},\"seqlen_q\":40,\"seqlen_k\":70}",
    "{\"dropout\":{\"p\":0.3,\"seed\":\"5\"},\"seqlen_q\":40,\"seqlen_k\":70}",
};
enum { N_CASES = sizeof cases / sizeof *cases };

static void check_bounds(const char *set, const char *text, fa_tensor_id id, const fa_want *w) {
  int64_t wrong = 0, finite = 0;
  for (int64_t e = 0; e < w->n; ++e) {
    const double bound = fa_want_bound(w, e);
    wrong += !(bound >= 0);
    finite += bound < INFINITY;
  }
  CHECK_MSG(wrong == 0 && finite * 2 >= w->n, "%s, %s of %s: %lld of %lld are no bounds, %lld finite", set,
            fa_tensor_id_name(id), text, (long long)wrong, (long long)w->n, (long long)finite);
}

static void check_set(const fa_arithmetic *a, const fa_case *c, const char *text, fa_tensors *t) {
  static const fa_tensor_id outputs[] = {FA_T_O, FA_T_LSE}, gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV};
  const fa_profile profile = fa_arithmetic_profile(a, c->problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .generic = true, .profile = &profile};
  fa_wants forward, backward;
  REQUIRE(fa_ref_forward(&c->problem, t, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c->problem, t, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  for (int i = 0; i < 2; ++i) check_bounds(a->name, text, outputs[i], &forward.t[outputs[i]]);
  for (int i = 0; i < 3; ++i) check_bounds(a->name, text, gradients[i], &backward.t[gradients[i]]);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
}

int main(void) {
  for (int n = 0; n < N_CASES; ++n)
    for (fa_dtype dtype = FA_F16; dtype <= FA_F32; ++dtype) {
      fa_case c;
      fa_tensors t;
      fa_arithmetic a;
      REQUIRE(fa_case_from_text(cases[n], &c, NULL) == FA_OK);
      c.problem.dtype = dtype;
      REQUIRE(fa_case_build(&c, &t, NULL) == FA_OK);
      for (int i = 0; fa_arithmetic_name(i); ++i)
        if (fa_arithmetic_named(fa_arithmetic_name(i), dtype, &a)) check_set(&a, &c, cases[n], &t);
      fa_tensors_free(&t);
      fa_case_free(&c);
    }
  return check_done();
}
