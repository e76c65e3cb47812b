/* What two judges say of one call, and whether both can be true. */
#include "fuzz/judging/two.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static fa_judge_trial trial;
static fa_result cpu;
static fa_error err;

/* Both say of O that it passes, with the largest ratio at o[4,2]. */
static void both_pass(void) {
  memset(&trial, 0, sizeof trial);
  memset(&cpu, 0, sizeof cpu);
  err.text[0] = 0;
  fa_verdict *v = trial.verdict;
  v->id = FA_T_O, v->rank = 2, v->n_worst = 1, v->worst_ratio = 0.5;
  v->worst[0].index[0] = 4, v->worst[0].index[1] = 2, v->worst[0].bound = 1;
  trial.n = 1, trial.passed = true;
  cpu.verdict[0] = *v, cpu.n_verdicts = 1;
}

static bool agree(void) {
  const fa_status status = fa_judges_agree(&trial, &cpu, &err);
  CHECK(status == FA_OK || status == FA_ERR_DEVICE);
  return status == FA_OK;
}

static void test_passed(void) {
  both_pass();
  CHECK(agree() && cpu.judged.apart == 0);
  cpu.verdict[0].fail = true, cpu.verdict[0].bad = 3;
  CHECK(!agree());
  CHECK_MSG(strstr(err.text, "disagree: o[4,2], on the GPU 0 bad and r=0.5, on the CPU 3 bad and r=0.5") &&
                !strstr(err.text, "vacuous"),
            "%s", err.text);
  cpu.verdict[0].id = FA_T_DQ; /* what the machine has not judged */
  CHECK(agree());
  both_pass();
  strcpy(cpu.verdict[0].vacuous, "all zeros");
  CHECK(!agree() && strstr(err.text, "r=0.5, and vacuous"));
}

static void test_wrong(void) {
  both_pass();
  trial.passed = false, trial.wrong[0] = true;
  CHECK(!agree());
  cpu.verdict[0].bad = 1, cpu.verdict[0].fail = true;
  CHECK(agree());
  trial.wrong[0] = false, cpu.verdict[0].worst_ratio = 7; /* a doubt says nothing */
  CHECK(agree());
  trial.verdict[1] = trial.verdict[0], trial.wrong[1] = true; /* behind the last */
  cpu.verdict[0].bad = 0;
  CHECK(agree());
}

static void test_ratios(void) {
  both_pass();
  cpu.verdict[0].worst_ratio = 0.5 * (1 - 0.75 * FA_RATIOS_APART);
  CHECK(agree() && fabs(cpu.judged.apart / FA_RATIOS_APART - 0.75) < 1e-9);
  cpu.verdict[0].worst_ratio = 0.5;
  CHECK(agree() && cpu.judged.apart > 0); /* the largest so far */
  cpu.verdict[0].worst_ratio = 0.5 * (1 - 1.25 * FA_RATIOS_APART);
  CHECK(!agree());
  cpu.verdict[0].worst_ratio = NAN;
  CHECK(!agree());
  cpu.verdict[0].worst[0].bound = FA_RATIO_COARSE / 2;
  CHECK(agree());
  both_pass();
  trial.verdict[0].worst_ratio = 0, cpu.verdict[0].worst_ratio = FA_RATIO_NOISE;
  CHECK(agree() && cpu.judged.apart == 0);
}

int main(void) {
  test_passed();
  test_wrong();
  test_ratios();
  return check_done();
}
