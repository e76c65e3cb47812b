/* Runs the items of one call on a few threads. */
#ifndef FA_CASES_THREADS_PARALLEL_H
#define FA_CASES_THREADS_PARALLEL_H

#include <stdint.h>

/* Calls work(context, thread, item) for item = 0 .. n_items - 1; up to n_threads threads (the caller
 * included) take items in order. Thread numbers are below n_threads, which counts as 256 if it is larger. */
void fa_parallel(int n_threads, int64_t n_items, void (*work)(void *context, int thread, int64_t item),
                 void *context);

#endif
