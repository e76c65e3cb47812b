/* The reference with latent caches and lists of keys: cases of cases/mla.json, cases/mla_prefill.json, cases/mixed_cache.json and cases/topk.json
 * against the slow attention, and rows whose keys can be counted on fingers. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/ref/differing.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

/* ---- one change in what the slow one computes: some case must tell it ---- */

static bool own_scale(fa_problem *p) {
  const bool had = p->scale != fa_default_scale(p->head_dim);
  p->scale = fa_default_scale(p->head_dim);
  return had;
}
static bool see_all(fa_problem *p) {
  const bool had = p->topk.present;
  p->topk.present = false;
  return had;
}
static bool cut_lists(fa_problem *p) {
  if (!p->topk.present || p->topk.len.n || p->topk.k < 4) return false;
  p->topk.k /= 4;
  return p->topk.none < 0.5;
}

/* ---- counted by hand ---- */

/* With queries of 0 the LSE of a row is the logarithm of the number of keys that its list names, repetitions too. */
static const struct {
  const char *text;
  int n[12]; /* keys of each row, in the order of the LSE; -1: the end */
} counted[] = {
    {"\"batch\":2,\"kvcache\":{\"len\":[9,3]},\"topk\":{\"k\":4}", {4, 3, -1}},
    {"\"batch\":2,\"kvcache\":{\"len\":[9,0],\"page_size\":4},\"topk\":{\"k\":4}", {4, 0, -1}},
    {"\"kvcache\":{\"len\":[9],\"page_size\":4},\"topk\":{\"k\":8,\"none\":0.5,\"none_at\":\"front\"}",
     {4, -1}},
    {"\"kvcache\":{\"len\":[3]},\"topk\":{\"k\":8,\"repeated\":1}", {8, -1}},
    {"\"kvcache\":{\"len\":[9]},\"topk\":{\"k\":5,\"empty_rows\":1}", {0, -1}},
    {"\"kvcache\":{\"len\":[9]},\"topk\":{\"k\":5,\"none\":1,\"beyond\":true}", {0, -1}},
    {"\"batch\":3,\"kvcache\":{\"len\":[9,9,9],\"page_size\":4},\"topk\":{\"k\":5,\"len\":[0,2,5]}",
     {0, 2, 5, -1}},
    {"\"batch\":2,\"kvcache\":{\"len\":[5,1],\"new\":2},\"topk\":{\"k\":6}", {6, 3, -1}},
    {"\"cu_seqlens_q\":[0,2,2,3],\"kvcache\":{\"len\":[9,9,2]},\"topk\":{\"k\":4,\"len\":[3,4,4]}",
     {3, 3, 2, -1}},
};

static void test_counted(void) {
  for (size_t k = 0; k < sizeof counted / sizeof *counted; ++k) {
    char text[900];
    fa_case c;
    fa_tensors in;
    fa_wants want = {0};
    fa_error err = {""};
    const fa_ref_options opt = {.n_threads = 1};
    snprintf(text, sizeof text,
             "{\"family\":\"kvcache\",\"seqlen_k\":16,\"mla\":{\"kv_lora_rank\":8,\"qk_rope_head_dim\":2},%s,"
             "\"fill\":{\"q\":\"zero\",\"default\":\"normal\"}}",
             counted[k].text);
    const fa_status status = fa_case_from_text(text, &c, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    if (status != FA_OK) continue;
    REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
    REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &want, &err) == FA_OK);
    int64_t n = 0;
    for (; counted[k].n[n] >= 0; ++n) {
      const double lse = want.t[FA_T_LSE].value[n], right = counted[k].n[n] ? log(counted[k].n[n]) : INFINITY;
      CHECK_MSG(lse == right || fabs(lse - right) < 1e-14, "counted %zu, row %lld: exp(LSE) = %g, %d keys", k,
                (long long)n, exp(lse), counted[k].n[n]);
    }
    CHECK_MSG(n == want.t[FA_T_LSE].n, "counted %zu: %lld rows", k, (long long)want.t[FA_T_LSE].n);
    for (int64_t e = 0; e < want.t[FA_T_O].n; ++e) CHECK(isfinite(want.t[FA_T_O].value[e]));
    fa_wants_free(&want);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

int main(void) {
  static const problem_change scales[] = {own_scale}, lists[] = {own_scale, see_all, cut_lists};
  test_counted();
  check_case_file("cases/mla.json", "", 6, scales, 1);
  check_case_file("cases/mla_prefill.json", "", 6, scales, 1);
  check_case_file("cases/mixed_cache.json", "", 9, scales, 1);
  check_case_file("cases/topk.json", "", 6, lists, 3);
  return check_done();
}
