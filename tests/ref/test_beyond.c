/* Calls of more rows and keys than a block has (FA_BLOCK_M, FA_BLOCK_N): values against those of the slow reference, and the
 * same to the last bit whether bounds are asked for or not, on one thread or on several. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>

#define SMALL "\"head_dim\":8,\"batch\":2,\"heads_q\":2,"
#define MEMEFF "{\"family\":\"memeff\",\"dtype\":\"f32\"," SMALL
#define FLEX "{\"family\":\"flex\"," SMALL

static const struct {
  const char *text;
  bool slow; /* its expressions, if it has any, are not written in C here */
} cases[] = {
    /* dBias with each axis broadcast, and rows of a second and third block: one, and some */
    {MEMEFF "\"seqlen_q\":257,\"seqlen_k\":20,\"bias\":{\"shape\":[\"b\",\"h\",\"q\",\"k\"],\"grad\":true}}",
     true},
    {MEMEFF "\"seqlen_q\":300,\"seqlen_k\":20,\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"],\"grad\":true}}",
     true},
    {MEMEFF "\"seqlen_q\":513,\"seqlen_k\":9,\"bias\":{\"shape\":[\"b\",1,\"q\",\"k\"],\"grad\":true}}",
     true},
    {MEMEFF "\"seqlen_q\":300,\"seqlen_k\":20,\"bias\":{\"shape\":[\"b\",\"h\",1,\"k\"],\"grad\":true}}",
     true},
    {MEMEFF "\"seqlen_q\":20,\"seqlen_k\":300,\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true}}", true},
    {MEMEFF "\"seqlen_q\":300,\"seqlen_k\":20,\"bias\":{\"shape\":[1,1,1,\"k\"],\"grad\":true}}", true},
    {"{" SMALL "\"seqlen_q\":300,\"seqlen_k\":290,\"sinks\":{\"grad\":true},\"mask\":{\"type\":\"causal\"}}",
     true},
    {"{" SMALL "\"seqlen_q\":290,\"seqlen_k\":600,\"softcap\":3,\"mask\":{\"type\":\"window\",\"left\":40,"
     "\"right\":9}}",
     true},
    {"{" SMALL "\"seqlen_q\":270,\"seqlen_k\":530,\"dropout\":{\"p\":0.3,\"seed\":\"5\"},\"alibi\":{}}",
     true},
    {FLEX "\"seqlen_q\":280,\"seqlen_k\":270,\"block_sparse\":{\"q_block\":64,\"kv_block\":64,\"density\":0."
          "3,\"seed\":\"1\"}}",
     true},
    /* a dropped pair has P Z = 0 and a share in the buffer's gradient all the same; some elements are never read */
    {FLEX "\"seqlen_q\":40,\"seqlen_k\":50,\"dropout\":{\"p\":0.5,\"seed\":\"3\"},\"score_mod\":\"score * "
          "w[kv_idx % 4]\","
          "\"buffers\":{\"w\":{\"shape\":[7],\"grad\":true}}}",
     false},
    {FLEX "\"seqlen_q\":300,\"seqlen_k\":280,\"score_mod\":\"score + w[h]\",\"mask_mod\":\"q_idx % 5 != "
          "kv_idx % 3\","
          "\"buffers\":{\"w\":{\"shape\":[2],\"grad\":true}}}",
     false},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static const double tolerance = 1e-13; /* of the size of an element's terms: 900 roundoffs of a double */

static void against_slow(int n, const fa_wants *want, const slow_outputs *slow) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_want *w = &want->t[id];
    const slow_array *s = &slow->t[id];
    if (s->n == 0 || w->n == 0) continue;
    REQUIRE(w->n == s->n);
    for (int64_t e = 0; e < w->n; ++e) {
      const double by = (double)fabsl((long double)w->value[e] - s->value[e]);
      CHECK_MSG(by <= tolerance * (double)s->mag[e] || (double)s->value[e] == w->value[e],
                "case %d %s [%lld]: %.17g, slow %.17Lg", n, fa_tensor_id_name((fa_tensor_id)id), (long long)e,
                w->value[e], s->value[e]);
    }
  }
}

static void same_values(int n, const char *how, const fa_wants *a, const fa_wants *b) {
  for (int id = 0; id < FA_T_COUNT; ++id) {
    const fa_want *x = &a->t[id], *y = &b->t[id];
    REQUIRE(x->n == y->n);
    for (int64_t e = 0; e < x->n; ++e)
      CHECK_MSG(x->value[e] == y->value[e], "case %d, %s: %s [%lld] is %.17g and %.17g", n, how,
                fa_tensor_id_name((fa_tensor_id)id), (long long)e, x->value[e], y->value[e]);
  }
}

typedef struct result {
  fa_wants forward, backward;
} result;

static result run(const fa_case *c, const fa_tensors *in, int n_threads, const fa_profile *profile) {
  const fa_ref_options opt = {.n_threads = n_threads, .profile = profile};
  result r = {0};
  fa_error err = {""};
  CHECK_MSG(fa_ref_forward(&c->problem, in, &opt, &r.forward, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(fa_ref_backward(&c->problem, in, NULL, NULL, &r.forward, &opt, &r.backward, &err) == FA_OK, "%s",
            err.text);
  return r;
}

static void free_result(result *r) {
  fa_wants_free(&r->forward);
  fa_wants_free(&r->backward);
}

static void test_case(int n) {
  fa_case c;
  fa_tensors in;
  fa_error err = {""};
  CHECK_MSG(fa_case_from_text(cases[n].text, &c, &err) == FA_OK, "case %d: %s", n, err.text);
  REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
  const fa_profile profile =
      fa_profile_get(c.problem.dtype == FA_F32 ? "simt-f32" : "mma-ampere", c.problem.dtype);
  result plain = run(&c, &in, 3, NULL), one = run(&c, &in, 1, NULL), bounds = run(&c, &in, 3, &profile);
  same_values(n, "threads", &plain.forward, &one.forward);
  same_values(n, "threads", &plain.backward, &one.backward);
  same_values(n, "bounds", &plain.forward, &bounds.forward);
  same_values(n, "bounds", &plain.backward, &bounds.backward);
  slow_outputs slow = {0};
  if (cases[n].slow) {
    slow_forward(&c.problem, &in, &slow);
    slow_backward(&c.problem, &in, NULL, NULL, &slow);
    against_slow(n, &plain.forward, &slow);
    against_slow(n, &plain.backward, &slow);
  }
  slow_outputs_free(&slow);
  free_result(&plain);
  free_result(&one);
  free_result(&bounds);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  for (int n = 0; n < N_CASES; ++n) test_case(n);
  return check_done();
}
