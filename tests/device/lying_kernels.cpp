/* The host's kernels of the judge, but for a comparison that finds nothing odd: canaries must find that out (test_lying.sh). */
#define fa_judge_functions fa_judge_honest_functions
#include "ref/cuda/machine.h"

#include "ref/cuda/kernels.cu"
#undef fa_judge_functions
#undef FA_JUDGE_KERNEL

static void compare_blindly(const fa_judge_batch *batch, const char *jobs, int64_t block) {
  const fa_judge_job *x = job_of_block(batch, jobs, &block);
  const int64_t end = (block + 1) * FA_JUDGE_ITEMS_ROW;
  for (int64_t item = block * FA_JUDGE_ITEMS_ROW; item < end && item < x->n; ++item) {
    fa_judge_compare(x, item);
    fa_judge_check *c = &x->output.check[item];
    c->odd = c->wrong = 0;
    c->ratio = 0.5;
  }
}

extern "C" const fa_judge_function fa_judge_functions[] = {
#define FA_JUDGE_KERNEL(name, kind)                                                                          \
  FA_JUDGE_KERNEL_##name == FA_JUDGE_KERNEL_compare ? compare_blindly : block_of_##name,
#include "ref/cuda/kernels.def"
};
