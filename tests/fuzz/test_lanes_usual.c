/* How many cases run at a time, and in one process, unless somebody says otherwise. */
#include "cases/threads/processors.h"
#include "fuzz/campaign/session.h"
#include "fuzz/one/lanes.h"
#include "tests/support/check.h"

static void take_lanes(int n) {
  (void)n;
}

static int jobs_with(fa_cli cli, bool lanes, bool endless, int64_t n_items) {
  static fa_session s;
  static fa_item some;
  fa_backend b = fa_backend_ref_f32;
  b.lanes = lanes ? take_lanes : NULL;
  s.cli = &cli, s.choice[0].backend = &b, s.n_choices = 1;
  s.item = endless ? NULL : &some, s.n_items = n_items;
  return fa_session_jobs(&s);
}

static int up_to(int most, int n) {
  return n < most ? n : most;
}

/* A process for each processor, or two where a GPU judges; 256 at most, and no more than cases. */
static void test_jobs(void) {
  const int n = fa_processors();
  CHECK(jobs_with((fa_cli){.judge = "cpu"}, true, true, 0) == up_to(256, n));
  CHECK(jobs_with((fa_cli){.judge = "cuda"}, true, true, 0) == up_to(256, 2 * n));
  CHECK(jobs_with((fa_cli){.judge = "cuda"}, false, true, 0) == up_to(256, n));
  CHECK(jobs_with((fa_cli){.judge = "cuda", .lanes = 1}, true, true, 0) == up_to(256, n));
  CHECK(jobs_with((fa_cli){.judge = "cuda", .jobs = 3}, true, true, 0) == 3);
  CHECK(jobs_with((fa_cli){.jobs = 256}, false, true, 0) == 256 &&
        jobs_with((fa_cli){.jobs = 257}, false, true, 0) == 256);
  CHECK(jobs_with((fa_cli){.jobs = 5}, false, false, 3) == 3 &&
        jobs_with((fa_cli){.jobs = 5}, false, false, 0) == 1);
  CHECK(jobs_with((fa_cli){.jobs = 5, .no_isolate = true}, false, true, 0) == 1);
}

int main(void) {
  test_jobs();
  static const fa_judge_choice on_gpu[] = {FA_JUDGE_BY_CUDA, FA_JUDGE_BY_AUTO, FA_JUDGE_BY_BOTH},
                               on_cpu[] = {FA_JUDGE_BY_CPU, FA_JUDGE_BY_HOST};
  for (int i = 0; i < 3; ++i) {
    CHECK(fa_lanes_jobs(on_gpu[i]) == 2);
    CHECK(fa_lanes_of(0, on_gpu[i], 64) == FA_LANES_USUAL);
    CHECK(fa_lanes_of(0, on_gpu[i], 5) == 5);
  }
  for (int i = 0; i < 2; ++i) {
    CHECK(fa_lanes_jobs(on_cpu[i]) == 1);
    CHECK(fa_lanes_of(0, on_cpu[i], 64) == 1);
    CHECK(fa_lanes_of(4, on_cpu[i], 64) == 4);
    CHECK(fa_lanes_of(1000, on_cpu[i], 64) == FA_LANES_MOST);
  }
  return check_done();
}
