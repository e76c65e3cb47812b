/* How many cases run at a time, and in one process, unless somebody says otherwise. */
#include "fuzz/one/lanes.h"
#include "tests/support/check.h"

int main(void) {
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
