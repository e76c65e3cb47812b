#include "fuzz/one/lanes.h"

int fa_lanes_of(int64_t wanted, fa_judge_choice judge, int jobs) {
  enum { MOST = 16 };
  const bool useful = judge == FA_JUDGE_BY_CUDA || judge == FA_JUDGE_BY_AUTO;
  int64_t n = wanted > 0 ? wanted : useful ? FA_LANES_USUAL : 1;
  if (n > MOST) n = MOST;
  return n < jobs ? (int)n : jobs;
}
