/* The judge in a process of its own, the processor in a device's place: it says the same, to several at once, and whatever
 * becomes of the process, no case is judged wrongly for it. */
#include "fuzz/judge_process/process.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_S 60

/* What a machine does when it comes to a kernel in the middle of a call. */
typedef enum trouble { NONE, DIES, HANGS, FAILS } trouble;

/* Of all processes of this test. */
static struct {
  trouble next; /* happens once */
  pid_t server;
} * shared;

static trouble take_trouble(void) {
  const trouble t = shared->next;
  shared->next = NONE;
  return t;
}

/* ---- a machine that gets into trouble ---- */

typedef fa_status launcher(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                           fa_error *err);
static launcher *launch_on_host;

static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                        fa_error *err) {
  const trouble t = kernel == FA_JUDGE_KERNEL_weigh ? take_trouble() : NONE;
  if (t == DIES) _exit(9);
  if (t == HANGS) pause();
  if (t == FAILS) return fa_fail(err, FA_ERR_DEVICE, "weigh: it fell over");
  return launch_on_host(self, kernel, tasks, n, err);
}

static fa_status open_troubled(fa_judge_machine **out, fa_error *err) {
  const fa_status status = fa_judge_machines_host.open(out, err);
  shared->server = getpid();
  if (status == FA_OK) {
    launch_on_host = (*out)->launch_all;
    (*out)->launch_all = launch;
  }
  return status;
}

static fa_status begin_nowhere(fa_error *err) {
  return fa_fail(err, FA_ERR_UNSUPPORTED, "no such machine");
}

static fa_status begin_never(fa_error *err) {
  for (;;) pause();
  return fa_fail(err, FA_ERR_UNSUPPORTED, "no such machine");
}

static fa_judge_machines troubled(void) {
  fa_judge_machines m = fa_judge_machines_host;
  m.open = open_troubled;
  return m;
}

static void start(const fa_judge_machines *machines, double patience_s) {
  fa_error err = {""};
  shared->next = NONE;
  const fa_status status = fa_judge_process_start(machines, patience_s, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
}

static fa_judge_machine *machine(bool *is_new) {
  fa_judge_machine *m;
  fa_error err = {""};
  const fa_status status = fa_judge_process_machine(&m, is_new, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(m);
  return m;
}

/* ---- tests ---- */

static bool says_the_same(const char *profile, int64_t index, fa_judge_machine *m) {
  fa_judge_machine *here = fa_judge_machine_host_new(NULL, 0);
  fa_result *a = malloc(sizeof *a), *b = malloc(sizeof *b);
  fa_error err = {""};
  subject s;
  REQUIRE(here && a && b);
  run_subject(profile, index, &s);
  REQUIRE(judge_subject(&s, here, false, a, &err) == FA_OK);
  const fa_status status = judge_subject(&s, m, false, b, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  const bool same = status == FA_OK && same_verdicts(a, b) && strcmp(a->judged.left, b->judged.left) == 0;
  fa_result_free(a);
  fa_result_free(b);
  free(a);
  free(b);
  free_subject(&s);
  fa_judge_machine_host_free(here);
  return same;
}

static void test_same(void) {
  bool is_new;
  start(&fa_judge_machines_host, PATIENCE_S);
  fa_judge_machine *m = machine(&is_new);
  CHECK(is_new);
  for (int64_t i = 0; i < 20; ++i) {
    CHECK_MSG(says_the_same("rate-host", i, m), "rate-host %lld", (long long)i);
    CHECK_MSG(says_the_same("edge", i, m), "edge %lld", (long long)i);
  }
  CHECK(machine(&is_new) == m && !is_new);
  fa_judge_process_stop();
}

static void test_several_at_once(void) {
  enum { N = 3 };
  pid_t pid[N];
  bool is_new;
  start(&fa_judge_machines_host, PATIENCE_S);
  machine(&is_new); /* which the children must not use */
  fflush(NULL);
  for (int i = 0; i < N; ++i) {
    if ((pid[i] = fork()) != 0) continue;
    int bad = 0;
    fa_judge_machine *m = machine(&is_new);
    for (int64_t n = 0; n < 8; ++n) bad += !says_the_same("rate-host", 8 * i + n, m);
    _exit(bad || !is_new || check_n_failed);
  }
  for (int i = 0, how = 1; i < N; ++i) CHECK(waitpid(pid[i], &how, 0) == pid[i] && how == 0);
  const bool same = says_the_same("rate-host", 1, machine(&is_new));
  CHECK(same);
  CHECK(!is_new);
  fa_judge_process_stop();
}

static void judge_first(const subject *s, fa_judge_machine *m, fa_status status, const char *left,
                        const char *says) {
  fa_result *r = malloc(sizeof *r);
  fa_error err = {""};
  REQUIRE(r);
  const fa_status got = judge_subject(s, m, false, r, &err);
  CHECK_MSG(got == status && strstr(err.text, says), "%s", err.text);
  if (got == FA_OK)
    CHECK_MSG(r->state == FA_UNTESTED && strcmp(r->judged.left, left) == 0, "%s", r->judged.left);
  if (got == FA_OK) CHECK(r->n_verdicts == 5 && (r->judged.by == FA_JUDGED_BY_CPU) == (left[0] != 0));
  fa_result_free(r);
  free(r);
}

/* In trouble a case is the CPU's, or an error; the next one is judged by a process that was started anew. */
static void test_trouble(trouble t, double patience_s, fa_status status, const char *left, const char *says) {
  const fa_judge_machines machines = troubled();
  subject s;
  bool is_new;
  run_subject("rate-host", 0, &s);
  start(&machines, patience_s);
  for (int round = 0; round < 2; ++round) {
    fa_judge_machine *m = machine(&is_new);
    CHECK(is_new);
    judge_first(&s, m, FA_OK, "", "");
    shared->next = t;
    judge_first(&s, m, status, left, says);
  }
  CHECK(machine(&is_new) && is_new);
  fa_judge_process_stop();
  free_subject(&s);
}

/* Nobody is waiting for it when it is killed, and nobody notices. */
static void test_killed(void) {
  const fa_judge_machines machines = troubled();
  subject s;
  bool is_new;
  run_subject("rate-host", 0, &s);
  start(&machines, PATIENCE_S);
  judge_first(&s, machine(&is_new), FA_OK, "", "");
  const pid_t before = shared->server;
  kill(before, SIGKILL);
  while (!is_new || shared->server == before) machine(&is_new);
  judge_first(&s, machine(&is_new), FA_OK, "", "");
  CHECK(!is_new);
  fa_judge_process_stop();
  free_subject(&s);
}

static void test_none(const fa_judge_machines *machines, fa_status status, const char *says) {
  fa_judge_machine *m;
  fa_error err = {""};
  bool is_new;
  start(machines, 0.2);
  for (int i = 0; i < 2; ++i) {
    CHECK(fa_judge_process_machine(&m, &is_new, &err) == status && !m && !is_new);
    CHECK_MSG(strcmp(err.text, says) == 0, "%s", err.text);
  }
  fa_judge_process_stop();
}

int main(void) {
  fa_judge_machines nowhere = fa_judge_machines_host, never = fa_judge_machines_host;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  nowhere.begin = begin_nowhere;
  never.begin = begin_never;
  test_same();
  test_several_at_once();
  test_trouble(DIES, PATIENCE_S, FA_OK, "the judge's process ended", "");
  test_trouble(HANGS, 1, FA_OK, "the judge's process did not answer", "");
  test_trouble(FAILS, PATIENCE_S, FA_ERR_DEVICE, "", "it fell over");
  test_killed();
  test_none(&nowhere, FA_ERR_UNSUPPORTED, "no such machine");
  test_none(&never, FA_ERR_IO, "the judge's process did not answer");
  setenv("FA_JUDGE_WIDE_FROM", "2x", 1);
  test_none(&fa_judge_machines_host, FA_ERR_INPUT, "FA_JUDGE_WIDE_FROM=2x: how many pairs, 1 or more");
  return check_done();
}
