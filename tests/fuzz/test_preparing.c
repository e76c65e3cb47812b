/* A device that is slow to open is opened while the first case's data are made; its errors are reported where
 * they were before. */
#include "fuzz/one/judges.h"
#include "fuzz/one/run_case.h"
#include "tests/fake_cuda/fixture.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static clockid_t main_clock;
static double main_seconds_before; /* what the main thread had worked when opening was asked for */
static bool was_beside;

static double main_seconds(void) {
  struct timespec t;
  clock_gettime(main_clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The context is created only after the main thread has worked. If the main thread waits instead, it
 * fails. The work is counted from before this thread was made: on a busy machine the main thread may be done
 * by the time this one first runs. */
static void open_beside_work(void) {
  was_beside = false;
  for (int n = 0; n < 1000 && !was_beside; ++n) {
    usleep(5000);
    was_beside = main_seconds() > main_seconds_before + 0.02;
  }
}

static fa_status look_and_refuse(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *o,
                                 fa_outcome *out, fa_error *err) {
  fa_backend_info info;
  (void)p, (void)t, (void)o, (void)out;
  fa_backend_cuda.describe(self, &info);
  return fa_fail(err, info.usable ? FA_ERR_UNSUPPORTED : FA_ERR_DEVICE, "%s",
                 info.usable ? "usable" : info.why_not);
}

static void run_json(const fa_backend *backend, const char *json, bool prepared, fa_result *r) {
  fa_case c;
  fa_tensors t;
  void *self = NULL;
  fa_error err = {""};
  fa_preparing preparing = {0};
  cuda_load(json, &c, &t);
  fa_tensors_free(&t);
  fa_result_init(r);
  REQUIRE(backend->open(NULL, &self, &err) == FA_OK);
  main_seconds_before = main_seconds();
  if (prepared) fa_preparing_begin(&preparing, backend, self, NULL, 0);
  CHECK(preparing.running == prepared);
  const fa_run_config config = {
      .backend = backend, .backend_self = self, .preparing = &preparing, .n_threads = 1};
  fa_run_case(&c, &config, r, &err);
  CHECK(!preparing.running);
  backend->close(self);
  fa_case_free(&c);
}

static const char large[] = "{\"heads_q\": 8, \"seqlen_q\": 2000, \"head_dim\": 128, \"backward\": false}";
static const char small[] = "{\"seqlen_q\": 20, \"head_dim\": 64}";

static void test_beside(void) {
  fa_result r;
  fa_backend looker = fa_backend_cuda;
  looker.run = look_and_refuse;
  fake_cuda_start();
  fake.opening = open_beside_work;
  run_json(&looker, large, true, &r);
  CHECK(was_beside && r.state == FA_SKIP && strcmp(r.reason, "usable") == 0);
  CHECK(fake.n_contexts == 0 && fake.misuse[0] == 0);
  fa_result_free(&r);
}

static char queues[8];

static void look_at_queues(void) {
  const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  snprintf(queues, sizeof queues, "%s", text ? text : "none");
}

/* A context with few hardware queues opens faster, unless the user asked for another number. */
static void test_queues(void) {
  static const char *const asked[] = {NULL, "8"};
  for (int i = 0; i < 2; ++i) {
    fa_result r;
    unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (asked[i]) setenv("CUDA_DEVICE_MAX_CONNECTIONS", asked[i], 1);
    fake_cuda_start();
    fake.opening = look_at_queues;
    run_json(&fa_backend_cuda, small, true, &r);
    CHECK_MSG(strcmp(queues, asked[i] ? asked[i] : "1") == 0, "%s", queues);
    fa_result_free(&r);
  }
}

/* The context is current where it is used, and destroyed with the backend. */
static void test_use(void) {
  fa_result r;
  fake_cuda_start();
  run_json(&fa_backend_cuda, small, true, &r);
  CHECK_MSG(r.state == FA_PASS && fake.misuse[0] == 0, "%s; %s", r.reason, fake.misuse);
  CHECK(fake.n_contexts == 0 && fake.n_launches > 0 && fake.bytes_in_use == 0);
  fa_result_free(&r);
}

/* Each call that opening makes fails once. */
static void test_failures(void) {
  for (int at = 0; at < 14; ++at) {
    fa_result *r[2];
    for (int prepared = 0; prepared < 2; ++prepared) {
      REQUIRE((r[prepared] = malloc(sizeof *r[0])) != NULL);
      fake_cuda_start();
      fake.n_devices = at == 0 ? 0 : 1;
      fake.fail_at = at;
      fake.fail_with = CUDA_ERROR_DEVICE_UNAVAILABLE;
      run_json(&fa_backend_cuda, small, prepared, r[prepared]);
    }
    CHECK_MSG(r[0]->state == r[1]->state && strcmp(r[0]->reason, r[1]->reason) == 0, "call %d: %s; %s", at,
              r[0]->reason, r[1]->reason);
    if (at == 0) CHECK(r[1]->state == FA_ERROR && strstr(r[1]->reason, "finds no device"));
    for (int n = 0; n < 2; ++n) {
      fa_result_free(r[n]);
      free(r[n]);
    }
  }
}

/* A backend that is closed before its first use; one without anything to prepare. */
static void test_unused(void) {
  void *self = NULL;
  fa_preparing preparing = {0};
  fake_cuda_start();
  REQUIRE(fa_backend_cuda.open(NULL, &self, NULL) == FA_OK);
  fa_preparing_begin(&preparing, &fa_backend_cuda, self, NULL, 0);
  fa_preparing_wait(&preparing);
  CHECK(fake.n_contexts == 1);
  fa_backend_cuda.close(self);
  CHECK(fake.n_contexts == 0);
  fa_preparing_begin(&preparing, &fa_backend_ref_f32, NULL, NULL, 0);
  CHECK(!preparing.running);
}

/* ---- turns ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A process that has the only turn, until it is killed. */
static pid_t hold_turn(const fa_process_slots *turns) {
  int ends[2];
  char one;
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    const int turn = fa_process_slots_acquire(turns, 5);
    if (turn >= 0 && write(ends[1], "", 1) == 1) pause();
    _exit(3);
  }
  CHECK(pid > 0 && read(ends[0], &one, 1) == 1);
  close(ends[0]);
  close(ends[1]);
  return pid;
}

static void end_holder(pid_t pid) {
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
}

static void *end_holder_later(void *pid) {
  usleep(200000);
  end_holder(*(pid_t *)pid);
  return NULL;
}

/* Seconds that opening the device takes here. */
static double seconds_to_prepare(const fa_process_slots *turns) {
  void *self = NULL;
  fa_preparing preparing = {0};
  fake_cuda_start();
  REQUIRE(fa_backend_cuda.open(NULL, &self, NULL) == FA_OK);
  const double begin = now();
  fa_preparing_begin(&preparing, &fa_backend_cuda, self, turns, 60);
  fa_preparing_wait(&preparing);
  const double seconds = now() - begin;
  fa_backend_cuda.close(self);
  return seconds;
}

/* The first of a process waits for its turn. Those behind it have the device already, and wait for nobody. */
static void test_turn_of_process(void) {
  fa_process_slots turns = fa_process_slots_make(1);
  pthread_t ender;
  pid_t holder = hold_turn(&turns);
  REQUIRE(pthread_create(&ender, NULL, end_holder_later, &holder) == 0);
  CHECK(seconds_to_prepare(&turns) >= 0.19);
  pthread_join(ender, NULL);
  holder = hold_turn(&turns);
  CHECK(seconds_to_prepare(&turns) < 30);
  end_holder(holder);
  fa_process_slots_free(&turns);
}

/* The judge's process opens the device in a turn, too: it answers nobody before. */
static void test_turn_of_judge(void) {
  fa_process_slots turns = fa_process_slots_make(1);
  fa_judge_config config = {0};
  fa_result *r = calloc(1, sizeof *r);
  fa_error err = {""};
  pthread_t ender;
  pid_t holder = hold_turn(&turns);
  REQUIRE(r);
  CHECK(fa_judges_start(FA_JUDGE_BY_HOST, 60, &turns, &err) == FA_OK);
  REQUIRE(pthread_create(&ender, NULL, end_holder_later, &holder) == 0);
  const double begin = now();
  CHECK_MSG(fa_judges_ask(FA_JUDGE_BY_HOST, &config, r, &err) == FA_OK, "%s", err.text);
  CHECK(config.machine && now() - begin >= 0.19);
  pthread_join(ender, NULL);
  fa_judges_stop();
  fa_process_slots_free(&turns);
  free(r);
}

int main(void) {
  test_turn_of_judge(); /* before this process has threads */
  setenv("FA_NVRTC", "off", 1);
  REQUIRE(pthread_getcpuclockid(pthread_self(), &main_clock) == 0);
  test_beside();
  test_use();
  test_queues();
  test_failures();
  test_unused();
  test_turn_of_process();
  fake_cuda_reset();
  return check_done();
}
