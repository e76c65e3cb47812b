/* Other projects' rules: what they compare with, and what each lets pass and what not. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "tests/mutants/rules.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"
#include "tests/support/standard_attention.h"

#include <math.h>
#include <string.h>

typedef struct made {
  fa_case c;
  fa_tensors in;
  standard_outputs exact, rounded;
} made;

static void make(made *m, const char *json) {
  fa_error err = {""};
  memset(m, 0, sizeof *m);
  REQUIRE(fa_case_from_text(json, &m->c, &err) == FA_OK);
  REQUIRE(fa_case_build(&m->c, &m->in, &err) == FA_OK);
  standard_attention(&m->c.problem, &m->in, false, &m->exact);
  standard_attention(&m->c.problem, &m->in, true, &m->rounded);
}

static void drop(made *m) {
  standard_outputs_free(&m->exact);
  standard_outputs_free(&m->rounded);
  fa_tensors_free(&m->in);
  fa_case_free(&m->c);
}

/* Packed queries over a cache have no cu_seqlens_k to begin from. */
static const char packed[] =
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"batch\":4,\"heads_q\":4,\"heads_kv\":2,\"head_dim\":16,"
    "\"seqlen_k\":64,\"cu_seqlens_q\":[0,1,1,12,14],\"mask\":{\"type\":\"causal\"},"
    "\"kvcache\":{\"len\":[33,8,40,2],\"page_size\":8},\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"head\"}}";

static void test_packed_queries_over_a_cache(void) {
  made m;
  slow_outputs slow = {0};
  make(&m, packed);
  slow_forward(&m.c.problem, &m.in, &slow);
  const slow_array *o = &slow.t[FA_T_O];
  REQUIRE(o->n == fa_tensor_count(&m.in.t[FA_T_O]));
  for (int64_t i = 0; i < o->n; ++i) {
    CHECK(fabs(m.exact.o[i] - (double)o->value[i]) < 1e-9);
    CHECK(fabs(m.rounded.o[i] - (double)o->value[i]) < 0.02 * (1 + fabs(m.exact.o[i])));
  }
  slow_outputs_free(&slow);
  drop(&m);
}

static bool rejects[N_RULES];

/* What the rules say of O times `by`, whose first element is `by_first` times what it should be. */
static void judge(made *m, double by, double by_first) {
  fa_tensor *o = &m->in.t[FA_T_O];
  int64_t index[FA_MAX_RANK];
  memset(rejects, 0, sizeof rejects);
  for (int64_t i = 0; i < fa_tensor_count(o); ++i) {
    fa_tensor_unravel(o, i, index);
    fa_tensor_set(o, index, m->exact.o[i] * (i == 0 ? by_first : by));
  }
  fa_rules_judge(&m->c.problem, FA_T_O, o, m->exact.o, m->rounded.o, NULL, rejects);
}

static void test_rules_of_eight_bits(void) {
  made m;
  make(&m, packed);
  REQUIRE(fabs(m.exact.o[0]) > 0.02 && fabs(m.exact.o[0]) < 4);
  judge(&m, 1, 1);
  for (int rule = 0; rule < N_RULES; ++rule) CHECK_MSG(!rejects[rule], "rule %d rejects what is right", rule);
  judge(&m, 1.04, 1.04);
  CHECK(!rejects[ALLCLOSE_EIGHT] && !rejects[COSINE] && !rejects[RELATIVE_NORM]);
  CHECK(rejects[ALLCLOSE] && rejects[XFORMERS]);
  judge(&m, 1.5, 1.5);
  CHECK(rejects[ALLCLOSE_EIGHT] && !rejects[COSINE] && rejects[RELATIVE_NORM]);
  judge(&m, 1, -4);
  CHECK(rejects[ALLCLOSE_EIGHT] && !rejects[COSINE]);
  judge(&m, -1, -1);
  CHECK(rejects[ALLCLOSE_EIGHT] && rejects[COSINE] && rejects[RELATIVE_NORM]);
  judge(&m, 1, NAN);
  for (int rule = 0; rule < N_RULES; ++rule) CHECK_MSG(rejects[rule], "rule %d passes NaN", rule);
  drop(&m);
}

int main(void) {
  test_packed_queries_over_a_cache();
  test_rules_of_eight_bits();
  return check_done();
}
