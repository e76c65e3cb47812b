/* Runs the items of one call on a few threads. */
#ifndef FA_REF_MATH_THREADS_H
#define FA_REF_MATH_THREADS_H

#include <stdint.h>

/* Calls work(context, thread, item) for item = 0 .. n_items - 1; up to n_threads threads (the caller
 * included) take items in order. Thread numbers are below n_threads. */
void fa_ref_parallel(int n_threads, int64_t n_items, void (*work)(void *context, int thread, int64_t item),
                     void *context);
/* Lets threads act in item order: wait(t, k) returns once done(t) was called k times. */
typedef struct fa_ref_order fa_ref_order;
fa_ref_order *fa_ref_order_new(int64_t n_queues);
void fa_ref_order_free(fa_ref_order *t);
void fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn);
void fa_ref_order_done(fa_ref_order *t, int64_t queue);

#endif
