/* Who is asked to judge what, and how many at once. */
#include "fuzz/judging/judge.h"
#include "fuzz/judging/two.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/lanes.h"
#include "ref/cuda/machine.h"
#include "tests/held/case_of.h"

#include <string.h>

/* A GPU that has to judge, and cannot, ends the run; one that may, does not. */
static void test_asked(void) {
  static fa_result r;
  fa_judge_config config = {.machine = NULL};
  fa_error err = {""};
  fa_result_init(&r);
  CHECK(fa_judges_ask(FA_JUDGE_BY_CPU, &config, &r, &err) == FA_OK);
  CHECK(fa_judges_ask(FA_JUDGE_BY_AUTO, &config, &r, &err) == FA_OK && config.machine == NULL);
  CHECK(!config.both);
  CHECK(fa_judges_ask(FA_JUDGE_BY_BOTH, &config, &r, &err) == FA_ERR_DEVICE && config.both);
  CHECK(fa_judges_ask(FA_JUDGE_BY_HOST, &config, &r, &err) == FA_ERR_DEVICE && config.both);
  CHECK(fa_judges_ask(FA_JUDGE_BY_CUDA, &config, &r, &err) == FA_ERR_DEVICE && !config.both);
  CHECK_MSG(strcmp(err.text, "the judge's process was not started") == 0, "%s", err.text);
  fa_result_free(&r);
}

/* Why the machine leaves a recorded run to the CPU, who judges it. O is stored in f64 or as it is; LSE is there or not. */
static void check_left(const char *text, bool wide_o, bool lse, const char *why) {
  static fa_result r;
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  fa_judge_machine none = {.self = NULL};
  const fa_judge_config config = {.profile = &f32, .n_threads = 1, .recorded = true, .machine = &none};
  fa_tensors in, got = {0};
  fa_error err = {""};
  fa_case c = case_of(text, &in);
  for (int id = FA_T_O; id <= FA_T_LSE; id += FA_T_LSE - FA_T_O) {
    const fa_tensor *t = &in.t[id];
    const fa_dtype dtype = id == FA_T_O && wide_o ? FA_F64 : t->dtype;
    if (id == FA_T_O || lse)
      REQUIRE(fa_tensors_add(&got, (fa_tensor_id)id, dtype, t->rank, t->shape, NULL, 0, &err) == FA_OK);
  }
  fa_result_init(&r);
  CHECK_MSG(fa_judge_by_two(&c.problem, &in, &got, &config, &r, &err) == FA_OK, "%s", err.text);
  CHECK_MSG(strcmp(r.judged.left, why) == 0, "%s, not %s", r.judged.left, why);
  fa_result_free(&r);
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* An LSE that a recorded run does not have is no output of another type: the machine is asked, and has a reason of its own. */
static void test_two(void) {
  static const char merge[] =
      "{\"family\":\"merge\",\"seqlen_q\":3,\"head_dim\":8,\"merge\":{\"parts\":2},\"backward\":false}";
  check_left(merge, false, false, "merge");
  check_left(merge, false, true, "merge");
  check_left(merge, true, true, "outputs of another type");
  check_left(merge, true, false, "outputs of another type");
}

/* A run that is no recorded one, as the machine is asked of it. */
typedef struct asked {
  fa_contract contract;
  fa_judge_config config;
  bool flat_o, no_o; /* O is of another rank, or not there */
} asked;

static void check_run(const char *text, const asked *as, const char *why) {
  static fa_result r;
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F16);
  fa_judge_machine none = {.self = NULL};
  fa_judge_config config = as->config;
  fa_outcome out = {0};
  fa_tensors in, got;
  fa_error err = {""};
  fa_case c = case_of(text, &in);
  const fa_run_options all = {.passes = FA_PASS_FORWARD | (c.problem.backward ? FA_PASS_BACKWARD : 0),
                              .n_threads = 1};
  config.profile = &f32, config.n_threads = 1, config.machine = &none, config.contract = &as->contract;
  REQUIRE(fa_tensors_clone(&got, &in, &err) == FA_OK);
  REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &got, &all, &out, &err) == FA_OK);
  if (as->flat_o) got.t[FA_T_O].rank = 3;
  if (as->no_o) got.t[FA_T_O].data = NULL;
  fa_result_init(&r);
  fa_judge_by_two(&c.problem, &in, &got, &config, &r, &err);
  CHECK_MSG(strcmp(r.judged.left, why) == 0, "%s: left for \"%s\", not \"%s\"", text, r.judged.left, why);
  fa_result_free(&r);
  fa_tensors_free(&in);
  fa_tensors_free(&got);
  fa_case_free(&c);
}

/* Each reason by itself; the last call, a merge, has one of its own, which comes after these. */
static void test_reasons(void) {
  static const char merge[] = "{\"family\":\"merge\",\"seqlen_q\":3,\"head_dim\":8,\"merge\":{\"parts\":2}}",
                    tall[] = "{\"seqlen_q\":3,\"seqlen_k\":2,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}";
  asked usual = {.no_o = false}, x;
  fa_contract_init(&usual.contract);
  check_run(merge, &usual, "merge");
  x = usual, x.config.sample = (fa_sample){.rows = 1, .strips = 1};
  check_run(merge, &x, "a sample");
  x = usual, x.config.end_to_end = true;
  check_run(merge, &x, "gradients from the reference's forward");
  x = usual, x.config.backward = true, x.contract.outputs &= ~FA_TENSOR_BIT(FA_T_O);
  check_run(merge, &x, "gradients from the reference's forward");
  x.contract.outputs = usual.contract.outputs & ~FA_TENSOR_BIT(FA_T_LSE);
  check_run(merge, &x, "gradients from the reference's forward");
  x.config.backward = false;
  check_run(merge, &x, "merge");
  x = usual, x.config.loose = true;
  check_run(merge, &x, "loose bounds");
  x = usual, x.contract.o_of_empty = FA_O_EMPTY_MEAN_V;
  check_run(tall, &x, "empty rows of its own");
  x = usual, x.contract.lse_dtype = FA_F16;
  check_run(merge, &x, "an LSE of its own type");
  x = usual, x.contract.lse_alibi = FA_LSE_ALIBI_COLUMN;
  check_run(merge, &x, "an LSE from the column");
  x = usual, x.flat_o = true;
  check_run(merge, &x, "outputs of another type");
  x = usual, x.no_o = true;
  check_run(merge, &x, "outputs of another type");
}

/* What a subject does not return, a machine does not see, whatever is there; else it would have a doubt. */
static void test_left_out(void) {
  const fa_profile f32 = fa_profile_get("simt-f32", FA_F32);
  for (int left_out = 0; left_out < 2; ++left_out) {
    static fa_result r;
    fa_contract contract;
    fa_judge_machine *m = NULL;
    fa_outcome out = {0};
    fa_tensors in, got;
    fa_error err = {""};
    fa_case c = case_of("{\"dtype\":\"f32\",\"seqlen_q\":3,\"head_dim\":8,\"backward\":false}", &in);
    const fa_run_options forward = {.passes = FA_PASS_FORWARD, .n_threads = 1};
    const int64_t first[FA_MAX_RANK] = {0};
    fa_contract_init(&contract);
    if (left_out) contract.outputs &= ~FA_TENSOR_BIT(FA_T_LSE);
    REQUIRE(fa_judge_machines_host.begin(&err) == FA_OK && fa_judge_machines_host.open(&m, &err) == FA_OK);
    REQUIRE(fa_tensors_clone(&got, &in, &err) == FA_OK);
    REQUIRE(fa_backend_ref_f32.run(NULL, &c.problem, &got, &forward, &out, &err) == FA_OK);
    fa_tensor_set(&got.t[FA_T_LSE], first, 99);
    const fa_judge_config config = {
        .profile = &f32, .n_threads = 1, .machine = m, .both = true, .contract = &contract};
    fa_result_init(&r);
    CHECK_MSG(fa_judge_by_two(&c.problem, &in, &got, &config, &r, &err) == FA_OK, "%s", err.text);
    CHECK_MSG(left_out ? r.judged.by == FA_JUDGED_BY_BOTH && r.n_verdicts == 1 : r.state == FA_FAIL,
              "%d: judged by %d, left for \"%s\"", left_out, (int)r.judged.by, r.judged.left);
    fa_judge_machines_host.close(m);
    fa_result_free(&r);
    fa_tensors_free(&in);
    fa_tensors_free(&got);
    fa_case_free(&c);
  }
}

/* Where only the CPU judges, a process has one case at a time, however many may be asked for. */
static void test_lanes(void) {
  CHECK(fa_lanes_of(0, FA_JUDGE_BY_CPU, 4) == 1 && fa_lanes_of(3, FA_JUDGE_BY_CPU, 4) == 3 &&
        fa_lanes_of(9, FA_JUDGE_BY_CPU, 4) == 4);
  CHECK(fa_lanes_of(0, FA_JUDGE_BY_CUDA, 1000) == FA_LANES_USUAL &&
        fa_lanes_of(100000, FA_JUDGE_BY_CUDA, 1000) == FA_LANES_MOST);
  CHECK(fa_lanes_jobs(FA_JUDGE_BY_CPU) == 1 && fa_lanes_jobs(FA_JUDGE_BY_AUTO) == 2);
}

int main(void) {
  test_asked();
  test_two();
  test_reasons();
  test_left_out();
  test_lanes();
  return check_done();
}
