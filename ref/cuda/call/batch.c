#include "ref/cuda/machine.h"

/* Items of a block of threads. */
enum { ROW = FA_JUDGE_ITEMS_ROW, ELEMENT = FA_JUDGE_ITEMS_ELEMENT, TILE = FA_JUDGE_ITEMS_TILE };
static const int items[] = {
#define FA_JUDGE_KERNEL(name, kind) kind,
#include "ref/cuda/kernels.def"
#undef FA_JUDGE_KERNEL
};

uint32_t fa_judge_batch_of(fa_judge_kernel kernel, const fa_judge_task *tasks, int n, fa_judge_batch *out) {
  int64_t blocks = 0;
  out->n = n;
  for (int i = 0; i < n; ++i) {
    out->at[i] = (const char *)tasks[i].job - (const char *)tasks[0].job;
    out->first[i] = (uint32_t)blocks;
    blocks += (tasks[i].n + items[kernel] - 1) / items[kernel];
    if (blocks > INT32_MAX) return 0;
  }
  return (uint32_t)blocks;
}
