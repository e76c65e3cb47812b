/* families_fuzzer with a subject that is wrong in one element of one output of one family: inputs of nothing but a key find it,
 * and a right subject passes them all. */
#include "cases/base/rng.h"
#include "fuzz/inputs/draws.h"
#include "fuzz/inputs/judged_input.h"
#include "gpu/backend.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
  fa_family family;
  fa_tensor_id output;
} plant;

static fa_status run_wrongly(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                             fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_host.run(self, p, t, opt, out, err);
  const fa_tensor *x = &t->t[plant.output];
  int64_t index[FA_MAX_RANK];
  if (status != FA_OK || out->state != FA_SUBJECT_OK || p->family != plant.family || !x->data) return status;
  const int64_t n = fa_tensor_count(x);
  if (n == 0) return status;
  fa_tensor_unravel(x, n / 2, index);
  fa_tensor_set(x, index, 3 * fa_tensor_get(x, index) + 7);
  return status;
}

static int kind_of(const fa_case *c, const fa_result *r) {
  (void)r;
  return (int)c->problem.family;
}

/* Runs inputs of a profile in a child until one is a finding: after how many, or 0 if none is. */
static int find(const char *profile, const fa_backend *subject, int most) {
  int ends[2], n = 0;
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const fa_judged_target target = {&fa_input_families, "planted", subject, NULL, kind_of};
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    setenv("FA_ARTIFACT_DIR", "/dev/null", 1); /* no folder: nothing is kept */
    for (n = 1; n <= most; ++n) {
      uint8_t bytes[FA_DRAWS_BYTES];
      const fa_draws x = {.head = (uint8_t)fa_generate_profile_find(profile), .key = (uint64_t)n};
      if (write(ends[1], &n, sizeof n) != sizeof n) _exit(1);
      fa_judged_input_run(bytes, fa_draws_write(&x, bytes), &target);
    }
    _exit(0);
  }
  int status = 0, last = 0;
  close(ends[1]);
  while (read(ends[0], &n, sizeof n) == sizeof n) last = n;
  close(ends[0]);
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  return last;
}

static void test_planted(void) {
  static const struct {
    const char *profile;
    fa_family family;
    fa_tensor_id output;
  } plants[] = {{"memeff", FA_MEMEFF, FA_T_O},      {"memeff", FA_MEMEFF, FA_T_DQ},
                {"bias", FA_MEMEFF, FA_T_DBIAS},    {"causal", FA_FLASH, FA_T_O},
                {"masks", FA_FLASH, FA_T_DK},       {"flex", FA_FLEX, FA_T_O},
                {"kvcache", FA_KVCACHE, FA_T_O},    {"merge", FA_MERGE, FA_T_O},
                {"merge", FA_MERGE, FA_T_DO_PARTS}, {"kvcache", FA_KVCACHE, FA_T_LSE}};
  fa_backend wrong = fa_backend_host;
  wrong.run = run_wrongly;
  for (size_t i = 0; i < sizeof plants / sizeof *plants; ++i) {
    plant.family = plants[i].family;
    plant.output = plants[i].output;
    const int n = find(plants[i].profile, &wrong, 40);
    CHECK_MSG(n > 0, "%s: nothing is found in %s", plants[i].profile, fa_tensor_id_name(plants[i].output));
  }
}

static void test_sound(void) {
  static const char *const profiles[] = {"memeff", "bias",  "flex",  "kvcache",
                                         "merge",  "masks", "sinks", "mixed"};
  for (size_t i = 0; i < sizeof profiles / sizeof *profiles; ++i) {
    const int n = find(profiles[i], &fa_backend_host, 6);
    CHECK_MSG(n == 0, "%s: input %d is a finding", profiles[i], n);
  }
}

int main(void) {
  test_planted();
  test_sound();
  return check_done();
}
