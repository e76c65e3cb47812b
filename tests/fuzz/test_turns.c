/* Slots shared by processes: never more holders than slots, a dying process releases its slot, and a hanging
 * holder does not block others forever. */
#include "fuzz/one/preparing.h"
#include "fuzz/one/turns.h"
#include "report/text/progress.h"
#include "tests/support/check.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct shared {
  atomic_int n_inside, most_inside, n_through;
} shared;
static shared *seen;

static void go_inside(int milliseconds) {
  const int n = atomic_fetch_add(&seen->n_inside, 1) + 1;
  int most = atomic_load(&seen->most_inside);
  while (n > most && !atomic_compare_exchange_weak(&seen->most_inside, &most, n)) {}
  usleep(1000u * (unsigned)milliseconds);
  atomic_fetch_sub(&seen->n_inside, 1);
  atomic_fetch_add(&seen->n_through, 1);
}

static void clear(void) {
  atomic_store(&seen->n_inside, 0);
  atomic_store(&seen->most_inside, 0);
  atomic_store(&seen->n_through, 0);
}

static pid_t start_one(const fa_process_slots *turns) {
  const pid_t pid = fork();
  if (pid == 0) {
    const int turn = fa_process_slots_acquire(turns, 60);
    go_inside(10);
    fa_process_slots_release(turns, turn);
    fa_process_slots_release(turns, -1); /* without a slot there is nothing to release */
    _exit(turn >= 0 ? 0 : 1);
  }
  return pid;
}

static int n_failed(int n) {
  int bad = 0;
  for (int i = 0, how = 0; i < n; ++i) bad += wait(&how) < 0 || how != 0;
  return bad;
}

static void test_at_most(int n_turns) {
  fa_process_slots turns = fa_process_slots_make(n_turns);
  REQUIRE(turns.fd >= 0);
  clear();
  for (int i = 0; i < 10; ++i) REQUIRE(start_one(&turns) > 0);
  CHECK(n_failed(10) == 0);
  CHECK(atomic_load(&seen->n_through) == 10);
  const int most = atomic_load(&seen->most_inside);
  CHECK_MSG(most == n_turns, "%d at once of %d", most, n_turns);
  fa_process_slots_free(&turns);
}

/* Holds a slot until it is killed. */
static pid_t start_slot_holder(const fa_process_slots *turns) {
  int ends[2];
  char byte = 0;
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (fa_process_slots_acquire(turns, 0) < 0 || write(ends[1], &byte, 1) != 1) _exit(1);
    for (;;) pause();
  }
  REQUIRE(read(ends[0], &byte, 1) == 1);
  close(ends[0]), close(ends[1]);
  return pid;
}

static void test_patience(void) {
  fa_process_slots turns = fa_process_slots_make(1);
  const pid_t holder = start_slot_holder(&turns);
  const double start = fa_seconds_now();
  CHECK(fa_process_slots_acquire(&turns, 0) < 0);
  CHECK(fa_process_slots_acquire(&turns, 0.05) < 0);
  CHECK(fa_seconds_now() - start >= 0.05);
  clear();
  REQUIRE(start_one(&turns) > 0);
  usleep(50000);
  CHECK(atomic_load(&seen->n_through) == 0); /* it waits */
  kill(holder, SIGKILL);
  REQUIRE(waitpid(holder, NULL, 0) == holder);
  CHECK(n_failed(1) == 0); /* and gets the dead one's slot */
  CHECK(atomic_load(&seen->n_through) == 1);
  fa_process_slots_free(&turns);
}

static void test_none(void) {
  fa_process_slots turns = fa_process_slots_make(1);
  fa_process_slots_free(&turns);
  CHECK(turns.fd < 0 && fa_process_slots_acquire(&turns, 60) < 0);
  fa_process_slots_release(&turns, -1);
  fa_process_slots_free(&turns);
  turns = (fa_process_slots){.fd = STDIN_FILENO, .n = 1}; /* not writable, so it cannot be locked */
  const fa_process_slots unmade = {.fd = -1};             /* as a run in one process has them */
  const double start = fa_seconds_now();
  REQUIRE(freopen("/dev/null", "r", stdin) != NULL);
  CHECK(fa_process_slots_acquire(&turns, 60) < 0 && fa_seconds_now() - start < 30);
  CHECK(fa_process_slots_acquire(&unmade, 60) < 0 && fa_seconds_now() - start < 30);
}

/* ---- opening a device ---- */

static void count_one(void *self) {
  ++*(int *)self;
}

/* Seconds that it took. */
static double prepare(const fa_process_slots *turns, double patience_s, int *n) {
  static const fa_backend backend = {.name = "counts", .prepare = count_one};
  const double start = fa_seconds_now();
  fa_preparing p = {0};
  fa_preparing_begin(&p, &backend, n, turns, patience_s);
  CHECK(p.running);
  fa_preparing_wait(&p);
  CHECK(!p.running);
  return fa_seconds_now() - start;
}

/* Where there are no turns nobody waits; where there are, a process waits for its first alone. */
static void test_preparing(void) {
  fa_process_slots turns = fa_process_slots_make(1);
  int n = 0;
  prepare(NULL, 60, &n);
  CHECK(n == 1);
  const pid_t holder = start_slot_holder(&turns);
  CHECK(prepare(&turns, 0.05, &n) >= 0.05 && n == 2);
  CHECK(prepare(&turns, 60, &n) < 30 && n == 3);
  kill(holder, SIGKILL);
  REQUIRE(waitpid(holder, NULL, 0) == holder);
  fa_process_slots_free(&turns);
}

int main(void) {
  seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(seen != MAP_FAILED);
  test_at_most(1);
  test_at_most(3);
  test_patience();
  test_preparing();
  test_none();
  return check_done();
}
