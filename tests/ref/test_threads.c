/* The reference's result does not depend on the number of threads: bit for bit, bounds included. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "cases/recipe/case.h"
#include "ref/reference.h"
#include "tests/support/check.h"

#include <string.h>

static bool same_bytes(const void *a, const void *b, size_t bytes) {
  return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, bytes) == 0);
}

static bool same_want(const fa_want *a, const fa_want *b) {
  size_t n = (size_t)a->n;
  return a->n == b->n && same_bytes(a->value, b->value, n * sizeof *a->value) &&
         same_bytes(a->quant, b->quant, n * sizeof *a->quant) &&
         same_bytes(a->accum, b->accum, n * sizeof *a->accum) &&
         same_bytes(a->noise, b->noise, n * sizeof *a->noise);
}

/* Some strips of keys, one of which ends behind the last key, and no rows. */
static const fa_ref_place strips[] = {{0, 0, 256}, {0, 0, 512}, {0, 1, 0}};
static const fa_ref_sample sample = {.n_strips = 3, .strip = strips};

static void run(const fa_case *c, const fa_tensors *in, int n_threads, const fa_profile *profile,
                bool sampled, fa_wants *forward, fa_wants *backward) {
  fa_error err = {""};
  fa_ref_options opt = {.n_threads = n_threads, .profile = profile, .generic = true};
  REQUIRE(fa_ref_forward(&c->problem, in, &opt, forward, &err) == FA_OK);
  if (sampled) opt.sample = &sample;
  if (c->problem.backward)
    REQUIRE(fa_ref_backward(&c->problem, in, NULL, NULL, forward, &opt, backward, &err) == FA_OK);
}

static void compare_as(const char *json, bool bounds, bool sampled) {
  static const int counts[] = {2, 3, 7};
  fa_case c;
  fa_tensors in = {0};
  fa_error err = {""};
  REQUIRE(fa_case_from_text(json, &c, &err) == FA_OK);
  REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
  const fa_profile recorded = fa_profile_get("recorded", c.problem.dtype),
                   *profile = bounds ? &recorded : NULL;
  fa_wants forward = {0}, backward = {0};
  run(&c, &in, 1, profile, sampled, &forward, &backward);
  for (int n = 0; n < 3; ++n) {
    fa_wants f = {0}, b = {0};
    run(&c, &in, counts[n], profile, sampled, &f, &b);
    for (int id = 0; id < FA_T_COUNT; ++id) {
      CHECK_MSG(same_want(&f.t[id], &forward.t[id]), "forward %s, %d threads", fa_tensor_id_name(id),
                counts[n]);
      CHECK_MSG(same_want(&b.t[id], &backward.t[id]), "backward %s, %d threads", fa_tensor_id_name(id),
                counts[n]);
    }
    fa_wants_free(&f);
    fa_wants_free(&b);
  }
  /* The comparison itself: one changed bit in one gradient is noticed. */
  fa_wants other = {0}, unused = {0};
  run(&c, &in, 2, profile, sampled, &other, &unused);
  other.t[FA_T_O].value[other.t[FA_T_O].n / 2] += 0x1p-40;
  CHECK(!same_want(&other.t[FA_T_O], &forward.t[FA_T_O]));
  fa_wants_free(&other);
  fa_wants_free(&unused);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

static void compare_threads(const char *json) {
  compare_as(json, true, false);
}

int main(void) {
  compare_threads(
      "{\"heads_q\":3,\"heads_kv\":1,\"seqlen_q\":500,\"seqlen_k\":700,\"mask\":{\"type\":\"causal\"}}");
  compare_threads("{\"family\":\"memeff\",\"dtype\":\"bf16\",\"batch\":2,\"heads_q\":2,\"seqlen_q\":300,"
                  "\"seqlen_k\":300,\"head_dim_v\":32,\"bias\":{\"shape\":[1,1,\"q\",\"k\"]},"
                  "\"dropout\":{\"p\":0.2,\"seed\":\"5\"}}");
  compare_threads("{\"dtype\":\"f32\",\"heads_q\":2,\"head_dim\":32,\"cu_seqlens_q\":[0,0,400,401,800],"
                  "\"cu_seqlens_k\":[0,300,300,700,1200],\"softcap\":5}");
  compare_as("{\"heads_q\":5,\"head_dim\":16,\"seqlen_q\":300,\"sinks\":{\"grad\":true}}", false, false);
  for (int bounds = 0; bounds < 2; ++bounds)
    compare_as("{\"heads_q\":4,\"heads_kv\":2,\"head_dim\":16,\"seqlen_q\":1500,\"seqlen_k\":700,\"mask\":{"
               "\"type\":\"causal\"}}",
               bounds, true);
  return check_done();
}
