#include "fuzz/one/lanes.h"

/* Where a judge is on a GPU, alone or beside the CPU's, whose work on most cases is less than the wait: else the processor is what
 * a case needs. */
static bool are_useful(fa_judge_choice judge) {
  return judge == FA_JUDGE_BY_CUDA || judge == FA_JUDGE_BY_AUTO || judge == FA_JUDGE_BY_BOTH;
}

int fa_lanes_jobs(fa_judge_choice judge) {
  return are_useful(judge) ? 2 : 1;
}

int fa_lanes_of(int64_t wanted, fa_judge_choice judge, int jobs) {
  int64_t n = wanted > 0 ? wanted : are_useful(judge) ? FA_LANES_USUAL : 1;
  if (n > FA_LANES_MOST) n = FA_LANES_MOST;
  return n < jobs ? (int)n : jobs;
}
