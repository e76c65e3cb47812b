/* Who is asked to judge what, and how many at once. */
#include "fuzz/judging/judge.h"
#include "fuzz/judging/two.h"
#include "fuzz/one/judges.h"
#include "fuzz/one/lanes.h"
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
  CHECK(fa_judges_ask(FA_JUDGE_BY_CUDA, &config, &r, &err) == FA_ERR_DEVICE);
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
  test_lanes();
  return check_done();
}
