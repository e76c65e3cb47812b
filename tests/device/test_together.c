/* Calls of several guests of the judge's process, done together: each gets what it gets alone, bit for bit; and one that dies or
 * sends nonsense meanwhile is nobody else's trouble.
 *
 * usage: test_judge_together [KERNELS.so]: the process's kernels from there (test_faults.py). */
#include "fuzz/judge_process/process.h"
#include "fuzz/judging/two.h"
#include "ref/cuda/try.h"
#include "tests/device/load.h"
#include "tests/device/subject.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { GUESTS = 5, CALLS = 3 };

/* Of all processes of this test. */
static struct {
  atomic_int most;    /* calls of one launch */
  atomic_bool slow;   /* the next launch: until everybody has asked */
  atomic_int awaited; /* guests that have not yet begun to ask */
  atomic_int servers;
} * shared;

static const fa_judge_function *kernels; /* of the process; NULL: this program's */

static void pause_for(double s) {
  const struct timespec t = {.tv_nsec = (long)(s * 1e9)};
  nanosleep(&t, NULL);
}

/* Until all have what they ask for, however long a busy machine takes to make it, and then for what they send. */
static void pause_for_all(void) {
  enum { MOST = 6000 };
  for (int i = 0; i < MOST && shared->awaited > 0; ++i) pause_for(0.01);
  pause_for(0.5);
}

/* ---- a machine that is slow once ---- */

static fa_status (*launch_on_host)(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                                   fa_error *err);

/* Of `weigh` a call that fits one wave has one launch. */
static fa_status launch(void *self, fa_judge_kernel kernel, const fa_judge_task *tasks, int n,
                        fa_error *err) {
  if (atomic_exchange(&shared->slow, false)) pause_for_all();
  if (kernel == FA_JUDGE_KERNEL_weigh && n > shared->most) shared->most = n;
  return launch_on_host(self, kernel, tasks, n, err);
}

static fa_status begin(fa_error *err) {
  ++shared->servers;
  return fa_judge_machines_host.begin(err);
}

static fa_status open_one(fa_judge_machine **out, fa_error *err) {
  *out = fa_judge_machine_host_new(kernels, 0);
  if (!*out) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  launch_on_host = (*out)->launch_all;
  (*out)->launch_all = launch;
  return FA_OK;
}

static fa_judge_machine *machine(void) {
  fa_judge_machine *m;
  bool is_new;
  fa_error err = {""};
  const fa_status status = fa_judge_process_machine(&m, &is_new, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(m);
  return m;
}

/* ---- guests ---- */

static uint64_t digest_by(fa_judge_machine *m, const subject *s) {
  const fa_ref_options options = {
      .n_threads = 1, .profile = &s->profile, .generic = fa_case_is_generic(&s->c)};
  const fa_compare_options as = {.poison = FA_POISON_A,
                                 .generic = options.generic,
                                 .judge_stats = options.generic,
                                 .profile = &s->profile,
                                 .doubt = FA_MACHINE_DOUBT};
  fa_judge_trial t = {.passed = true, .is_signed = true};
  fa_error err = {""};
  const fa_status status =
      s->c.problem.backward ? fa_judge_try_both(m, &s->c.problem, &s->in, &s->got, &options, &as, &t, &err)
                            : fa_judge_try(m, &s->c.problem, &s->in, &s->got, &options, &as, false, &t, &err);
  CHECK_MSG(status == FA_OK || status == FA_ERR_UNSUPPORTED, "%s", err.text);
  return t.digest + (uint64_t)t.passed + (uint64_t)status;
}

/* Its calls, one after another, each as it is alone. All subjects are made before anybody asks. */
static int be_guest(int guest) {
  subject s[CALLS];
  uint64_t alone[CALLS];
  fa_judge_machine *here = fa_judge_machine_host_new(NULL, 0), *m = machine();
  REQUIRE(here);
  for (int i = 0; i < CALLS; ++i) {
    run_subject("rate-host", CALLS * guest + i, &s[i]);
    alone[i] = digest_by(here, &s[i]);
  }
  --shared->awaited;
  for (int i = 0; i < CALLS; ++i) CHECK(digest_by(m, &s[i]) == alone[i]);
  for (int i = 0; i < CALLS; ++i) free_subject(&s[i]);
  fa_judge_machine_host_free(here);
  return check_n_failed > 0;
}

/* What no machine has: each is answered with an error, by a process that goes on. */
static int be_nonsense(int kind) {
  fa_judge_machine *m = machine();
  char *memory, *staged, back[8];
  fa_error err = {""};
  const fa_judge_job job = {.n = 1};
  REQUIRE(m->reserve(m->self, 256, &memory, &err) == FA_OK);
  REQUIRE(m->stage(m->self, 256, &staged, &err) == FA_OK);
  if (kind == 0) m->launch(m->self, FA_JUDGE_N_KERNELS, &job, &err);
  if (kind == 1) m->upload(m->self, memory + 256, staged, 8, &err);
  if (kind == 2) m->clear(m->self, memory - 8, 8, &err);
  if (kind == 3) m->upload(m->self, memory, staged - 64, 8, &err);
  if (kind == 4) m->launch(m->self, FA_JUDGE_KERNEL_clear, &(fa_judge_job){.n = 0}, &err);
  if (kind == 4)
    m->launch(m->self, FA_JUDGE_KERNEL_clear, &(fa_judge_job){.n = 1, .whole_to = (double *)memory}, &err);
  if (kind == 4) m->clear(m->self, memory, 8, &err); /* behind a launch */
  CHECK(m->download(m->self, back, memory, sizeof back, &err) == FA_ERR_DEVICE);
  CHECK_MSG(strcmp(err.text, "no command of the judge") == 0, "%s", err.text);
  return check_n_failed > 0;
}

static pid_t start_guest(int (*be)(int), int which) {
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) _exit(be(which));
  return pid;
}

static void start(int awaited) {
  static fa_judge_machines machines;
  fa_error err = {""};
  machines = fa_judge_machines_host;
  machines.lines = 1;
  machines.begin = begin;
  machines.open = open_one;
  shared->most = shared->servers = 0;
  shared->slow = true;
  shared->awaited = awaited;
  const fa_status status = fa_judge_process_start(&machines, 60, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
}

static void wait_for(const pid_t *pid, int n) {
  for (int i = 0, how = 1; i < n; ++i) CHECK(waitpid(pid[i], &how, 0) == pid[i] && how == 0);
}

static void test_as_alone(void) {
  pid_t pid[GUESTS];
  start(GUESTS);
  for (int i = 0; i < GUESTS; ++i) pid[i] = start_guest(be_guest, i);
  wait_for(pid, GUESTS);
  CHECK_MSG(shared->most > 2, "%d calls at most were done together", shared->most);
  CHECK(shared->servers == 1);
  fa_judge_process_stop();
}

/* One is killed while its call waits or is done, another while it has said nothing yet. */
static void test_beside_trouble(void) {
  enum { KINDS = 5 };
  pid_t pid[2], dying[2], wild[KINDS];
  start(0); /* who dies may not come to it */
  for (int i = 0; i < 2; ++i) pid[i] = start_guest(be_guest, i);
  for (int i = 0; i < 2; ++i) dying[i] = start_guest(be_guest, 2 + i);
  for (int i = 0; i < KINDS; ++i) wild[i] = start_guest(be_nonsense, i);
  while (shared->slow) pause_for(0.01);
  for (int i = 0; i < 2; ++i, pause_for(0.2)) kill(dying[i], SIGKILL);
  wait_for(pid, 2);
  wait_for(wild, KINDS);
  for (int i = 0; i < 2; ++i) waitpid(dying[i], NULL, 0);
  CHECK(shared->servers == 1);
  fa_judge_process_stop();
}

int main(int argc, char **argv) {
  kernels = load_kernels(argc > 1 ? argv[1] : NULL);
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  test_as_alone();
  if (argc == 1) test_beside_trouble();
  return check_done();
}
