/* How many cases a process runs at once, over one context of a GPU. Contexts of several processes take turns there, and
 * kernels of one context do not. */
#ifndef FA_FUZZ_ONE_LANES_H
#define FA_FUZZ_ONE_LANES_H

#include "fuzz/judging/run_config.h"

#include <stdint.h>

enum { FA_LANES_USUAL = 16, FA_LANES_MOST = 32 };

/* Cases at a time for each processor: such a case waits for the GPU two thirds of its time. */
int fa_lanes_jobs(fa_judge_choice judge);

/* wanted: by the user, 0 for the usual number; jobs: cases at a time, in all processes. For a backend that has lanes
 * (gpu/backend.h). */
int fa_lanes_of(int64_t wanted, fa_judge_choice judge, int jobs);

#endif
