/* A run of a case, judged by the reference or by a law, gives back what it takes; and when any of its allocations fails, it says so, or says
 * what it says otherwise, and has given back all. */
#include "fuzz/judging/sample.h"
#include "fuzz/one/golden.h"
#include "fuzz/one/run_case.h"
#include "fuzz/untrusted/rules.h"
#include "tests/held/case_of.h"
#include "tests/held/guarded.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Zeros: a sum of nothing has no rounding, and computing takes long. */
static fa_status run(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                     fa_outcome *out, fa_error *err) {
  (void)self, (void)p, (void)out, (void)err;
  const fa_tensor_bits written = fa_tensors_written_by(opt->passes);
  int64_t index[FA_MAX_RANK];
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int64_t e = 0; written >> id & 1 && t->t[id].data && e < fa_tensor_count(&t->t[id]); ++e) {
      fa_tensor_unravel(&t->t[id], e, index);
      fa_tensor_set(&t->t[id], index, 0);
    }
  return FA_OK;
}

/* What a subject can say that takes memory to expect: ALiBi as a column's, and the mean of all values where no key is visible; or
 * an LSE of its own there, beside which gradients are judged. */
static void declare(void *self, const fa_problem *p, fa_declaration *out) {
  (void)self;
  if (p->alibi.present) {
    out->contract.lse_alibi = FA_LSE_ALIBI_COLUMN;
    out->contract.o_of_empty = FA_O_EMPTY_MEAN_V;
  } else if (p->heads_q > 1) {
    out->contract.lse_of_empty = FA_LSE_EMPTY_ANY;
  } else {
    out->contract.lse_of_empty = FA_LSE_EMPTY_ZERO;
  }
}

static const char *const cases[] = {
    "{\"seqlen_q\":3,\"head_dim\":8}",
    "{\"seqlen_q\":4,\"seqlen_k\":2,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},\"alibi\":{}}",
    "{\"seqlen_q\":4,\"seqlen_k\":2,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}",
    "{\"seqlen_q\":4,\"seqlen_k\":2,\"head_dim\":8,\"heads_q\":2,\"mask\":{\"type\":\"causal\"}}",
    "{\"seqlen_q\":3,\"seqlen_k\":300,\"head_dim\":1}",
    "{\"cu_seqlens_q\":[0,1,3],\"cu_seqlens_k\":[0,2,4],\"head_dim\":8,\"heads_q\":2}",
    "{\"seqlen_q\":3,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},\"dropout\":{\"p\":0.3,\"seed\":\"1\"},"
    "\"return_softmax\":true}",
    "{\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":[5],\"new\":1}}",
    "{\"family\":\"flex\",\"seqlen_q\":3,\"head_dim\":8,\"score_mod\":\"score + kv_idx\"}",
    "{\"law\":\"repeat\",\"cu_seqlens_q\":[0,1,3],\"cu_seqlens_k\":[0,2,4],\"head_dim\":8}",
    "{\"law\":\"repeat\",\"seqlen_q\":3,\"head_dim\":8}",
    "{\"law\":\"key-permutation\",\"seqlen_q\":3,\"head_dim\":8}",
    "{\"law\":\"key-permutation\",\"seqlen_q\":20000,\"seqlen_k\":4000,\"head_dim\":8,\"head_dim_v\":8,"
    "\"backward\":false}",
    "{\"law\":\"head-permutation\",\"seqlen_q\":3,\"head_dim\":8,\"heads_q\":2,\"heads_kv\":2,\"alibi\":{}}",
    "{\"law\":\"batch-alone\",\"seqlen_q\":3,\"head_dim\":8,\"batch\":3}",
    "{\"law\":\"causal-prefix\",\"seqlen_q\":3,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"merge-ranges\",\"seqlen_q\":3,\"head_dim\":8}",
    "{\"law\":\"bias-mask\",\"family\":\"memeff\",\"seqlen_q\":3,\"head_dim\":8,\"bias\":{\"shape\":[1,1,1,"
    "\"k\"]},\"mask\":{\"type\":\"causal\"}}",
    "{\"law\":\"page-permutation\",\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":"
    "["
    "5],\"page_size\":4}}",
    "{\"law\":\"cache-contiguous\",\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":"
    "["
    "5],\"page_size\":4}}",
    "{\"law\":\"cache-appended\",\"family\":\"kvcache\",\"seqlen_k\":8,\"head_dim\":8,\"kvcache\":{\"len\":["
    "5],\"new\":1}}",
    "{\"law\":\"part-empty\",\"family\":\"merge\",\"seqlen_q\":3,\"head_dim\":8,\"merge\":{\"parts\":2}}",
    "{\"law\":\"part-nested\",\"family\":\"merge\",\"seqlen_q\":3,\"head_dim\":8,\"merge\":{\"parts\":3}}",
    "{\"law\":\"part-nested\",\"family\":\"merge\",\"cu_seqlens_q\":[0,1,3],\"head_dim\":8,\"merge\":{"
    "\"parts\":3}}",
    "{\"law\":\"sink-none\",\"seqlen_q\":3,\"head_dim\":8,\"sinks\":true}",
};

static const char *kept; /* where failures are dumped; NULL: nowhere */
static bool sampled;     /* two rows and a strip are judged */
static const fa_rules *rules; /* by which the subject is judged; NULL: by all */

/* What is said of a run: how it ended, and of how many outputs. */
typedef struct said {
  fa_state state;
  int n_verdicts;
} said;

static fa_status judge(const fa_case *c, bool right, said *of, fa_error *err) {
  static fa_result r;
  fa_backend b = fa_backend_ref_f32;
  if (!right) b.run = run;
  if (c->law == FA_LAW_NONE && c->problem.seqlen_q > c->problem.seqlen_k) b.declare = declare;
  const fa_run_config config = {.backend = &b,
                                .n_threads = 1,
                                .maps = !right,
                                .keep_dir = kept,
                                .rules = rules,
                                .sample = {.rows = sampled ? 2 : 0, .strips = sampled, .seed = 1}};
  fa_result_init(&r);
  const fa_status status = fa_run_case(c, &config, &r, err);
  *of = (said){r.state, r.n_verdicts};
  fa_result_free(&r);
  return status;
}

/* Allocation 0, 1, 2 ... fails, until there are no more. */
static void fail_each(const fa_case *c, int n, bool right, said usual) {
  const long before = guarded_live();
  for (long i = 0; i < 10000; ++i) {
    fa_error err = {""};
    guarded_fail_after(i);
    said of;
    const fa_status status = judge(c, right, &of, &err);
    const bool unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(guarded_live() == before, "case %d, allocation %ld: %ld blocks before, %ld after", n, i, before,
              guarded_live());
    if (unused) return;
    CHECK_MSG(status == FA_ERR_MEMORY || (of.state == usual.state && of.n_verdicts == usual.n_verdicts),
              "case %d, allocation %ld: %d %s, %s, %d outputs", n, i, (int)status, err.text,
              fa_state_name(of.state), of.n_verdicts);
  }
  CHECK(!"an end");
}

/* Without the layer of bounds, what is loosened instead is no more than there is. */
static void test_loose(void) {
  const fa_rules loose = {.layers = FA_TRUSTED_LAYERS & ~(1u << FA_LAYER_BOUNDS)};
  said of;
  fa_error err = {""};
  fa_case c;
  REQUIRE(fa_case_from_text(cases[0], &c, &err) == FA_OK);
  rules = &loose;
  CHECK_MSG(judge(&c, true, &of, &err) == FA_OK && of.state == FA_PASS, "%s", err.text);
  rules = NULL;
  fa_case_free(&c);
}

/* A sample's rows are all there, or there is no memory for them. */
static void test_rows_needed(void) {
  const fa_sample sample = {.rows = 3, .strips = 1, .seed = 1};
  fa_sample_places places;
  fa_tensors in;
  fa_error err = {""};
  fa_case c = case_of("{\"seqlen_q\":9,\"seqlen_k\":300,\"head_dim\":1}", &in);
  REQUIRE(fa_sample_draw(&c.problem, &in, &sample, 1, true, &places, &err) == FA_OK);
  for (long i = 0; i < 20; ++i) {
    fa_ref_sample needed;
    guarded_fail_after(i);
    const fa_status status = fa_sample_rows_needed(&c.problem, &in, &places, false, NULL, &needed, &err);
    const bool unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(unused ? status == FA_OK && needed.n_rows == 3 : status == FA_ERR_MEMORY,
              "allocation %ld: %d, %lld rows", i, (int)status, (long long)needed.n_rows);
    free((void *)needed.row);
  }
  fa_sample_places_free(&places);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* A golden is written and found the same, or there is no memory for it. */
static void test_golden(const char *folder) {
  bool unused = false;
  char why[600];
  fa_error err = {""};
  fa_case c;
  REQUIRE(fa_case_from_text("{\"seqlen_q\":2,\"head_dim\":8}", &c, &err) == FA_OK);
  REQUIRE(fa_golden_write(folder, "x", &c, 1, &err) == FA_OK);
  for (long i = 0; i < 10000 && !unused; ++i) {
    const long before = guarded_live();
    bool same = false;
    guarded_fail_after(i);
    const fa_status wrote = fa_golden_write(folder, "x", &c, 1, &err);
    const fa_status checked =
        wrote == FA_OK ? fa_golden_check(folder, "x", &c, 1, &same, why, sizeof why, &err) : wrote;
    unused = guarded_waits();
    guarded_fail_after(-1);
    CHECK_MSG(checked == FA_OK ? same : checked == FA_ERR_MEMORY && !unused, "allocation %ld: %d, %s", i,
              (int)checked, err.text);
    CHECK_MSG(guarded_live() == before, "allocation %ld: %ld blocks before, %ld after", i, before,
              guarded_live());
  }
  CHECK(unused);
  fa_case_free(&c);
}

static void remove_dumps(const char *folder) {
  char path[400];
  DIR *d = opendir(folder);
  REQUIRE(d);
  for (struct dirent *e; (e = readdir(d));) {
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (e->d_name[0] != '.') unlink(path);
  }
  closedir(d);
  CHECK(rmdir(folder) == 0);
}

int main(void) {
  char folder[] = "/tmp/fa-test-runs-memory-XXXXXX";
  REQUIRE(mkdtemp(folder));
  for (int n = 0; n < (int)(sizeof cases / sizeof *cases); ++n) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(cases[n], &c, &err) == FA_OK, "case %d: %s", n, err.text);
    for (int right = 0; right <= (c.law == FA_LAW_NONE); ++right) {
      said usual;
      kept = n == 0 ? folder : NULL;
      sampled = c.problem.seqlen_k > 256;
      REQUIRE(judge(&c, right, &usual, &err) == FA_OK); /* what is kept for ever is taken now */
      fail_each(&c, n, right, usual);
    }
    fa_case_free(&c);
  }
  test_loose();
  test_golden(folder);
  remove_dumps(folder);
  test_rows_needed();
  return check_done();
}
