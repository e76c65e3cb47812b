/* Threads that must act in the order of their items. */
#ifndef FA_REF_MATH_ORDER_H
#define FA_REF_MATH_ORDER_H

#include <stdint.h>

/* Lets threads act in item order: wait(t, k) returns once done(t) was called k times. */
typedef struct fa_ref_order fa_ref_order;
fa_ref_order *fa_ref_order_new(int64_t n_queues);
void fa_ref_order_free(fa_ref_order *t);
void fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn);
void fa_ref_order_done(fa_ref_order *t, int64_t queue);

#endif
