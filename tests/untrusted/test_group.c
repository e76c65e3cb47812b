/* The control group around a candidate: what it stops that signals cannot, what it says when the memory runs out. Where none
 * can be made, that is said in words. */
#include "fuzz/machine/freeze.h"
#include "gpu/wall/limits.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

static atomic_long *shared_count(void) {
  atomic_long *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(count != MAP_FAILED);
  return count;
}

/* A chain of processes, of which each starts the next and ends: it never is where one looks. */
static void run_relay(atomic_long *count) {
  for (;;) {
    const pid_t next = fork();
    if (next > 0) _exit(0);
    if (next == 0) atomic_fetch_add(count, 1);
  }
}

static long steps_in_a_while(atomic_long *count) {
  const long then = atomic_load(count);
  usleep(100000);
  return atomic_load(count) - then;
}

static pid_t start_relay(const fa_wall_cgroup *g, atomic_long *count) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  if (!fa_wall_cgroup_enter(g)) _exit(1);
  run_relay(count);
  return 0;
}

static void test_freeze(const fa_wall_cgroup *g) {
  atomic_long *count = shared_count();
  prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that the chain stays among our descendants, */
  signal(SIGCHLD, SIG_IGN);         /* whose ends nobody has to wait for */
  REQUIRE(start_relay(g, count) > 0);
  while (atomic_load(count) < 20) usleep(100);
  fa_freeze_children(getpid(), true);
  if (steps_in_a_while(count) > 0) printf("the chain has got away from signals, as it may\n");
  fa_freeze_children(getpid(), false);
  CHECK(fa_wall_cgroup_freeze(g, true));
  CHECK_MSG(steps_in_a_while(count) == 0, "a frozen group goes on");
  CHECK(fa_wall_cgroup_freeze(g, false));
  CHECK_MSG(steps_in_a_while(count) > 0, "a group that was let go stands still");
  CHECK(fa_wall_cgroup_freeze(g, true)); /* and whoever removes it does not wait for ever */
  CHECK(fa_wall_cgroup_remove(g));
  signal(SIGCHLD, SIG_DFL);
}

/* Takes 256 MiB, or dies. */
static int take_memory(const fa_wall_cgroup *g) {
  int status = 0;
  const pid_t pid = fork();
  if (pid == 0) {
    if (g && !fa_wall_cgroup_enter(g)) _exit(2);
    volatile char *p = malloc((size_t)256 * MIB);
    for (size_t i = 0; p && i < (size_t)256 * MIB; i += 4096) p[i] = 1;
    _exit(p ? 0 : 1);
  }
  waitpid(pid, &status, 0);
  return status;
}

static void test_memory(void) {
  fa_wall_cgroup g;
  char why[300], text[200];
  REQUIRE(fa_wall_cgroup_make(&g, (size_t)64 * MIB, why, sizeof why));
  fa_wall_limits_text(&g, 0, "", text, sizeof text);
  CHECK_MSG(strstr(text, ": 64 MiB, "), "%s", text);
  CHECK(!fa_wall_cgroup_ran_out(&g));
  CHECK(take_memory(NULL) == 0);
  const int status = take_memory(&g);
  CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "%d", status);
  CHECK(fa_wall_cgroup_ran_out(&g));
  CHECK(fa_wall_cgroup_remove(&g));
}

/* What is said, and done, where there is no group. */
static void test_without(void) {
  const fa_wall_cgroup none = {0};
  char text[200];
  CHECK(!fa_wall_cgroup_freeze(&none, true) && !fa_wall_cgroup_ran_out(&none));
  fa_wall_limits_text(&none, (size_t)2 << 30, "no cgroup", text, sizeof text);
  CHECK_MSG(strstr(text, "rlimits alone") && strstr(text, "for each process an address space of 2 GiB"), "%s",
            text);
}

int main(void) {
  fa_wall_cgroup g;
  char why[300];
  test_without();
  if (!fa_wall_cgroup_make(&g, (size_t)512 * MIB, why, sizeof why)) {
    printf("not tried: %s\n", why);
    return check_done();
  }
  if (g.freezer < g.n)
    test_freeze(&g);
  else
    CHECK(fa_wall_cgroup_remove(&g));
  test_memory();
  return check_done();
}
