/* Inside the executor: launches whose additions of floats must be in a fixed order (fa_simt_launch.adds_in_order).
 *
 * Of two additions by different blocks to the same 16 bytes, one must come before the other by semaphores:
 *   1. the addition is complete: a bulk one when its thread has waited for it (tma_store_wait; that its source has been
 *      read is not enough), any other at once;
 *   2. a semaphore_release of its block comes later, by the program of the same thread or by barriers;
 *   3. a semaphore_wait sees that release, in the other block or in one whose own release the other has waited for,
 *      and so on;
 *   4. the other addition comes after the wait, likewise.
 * All else is a RACE, whichever of the two runs first, which the report calls the one that was added to.
 *
 * It does not see additions of one block that nothing orders (of those to the same 16 bytes the last one counts), nor
 * loads and stores among the additions. An addition of fewer than 16 bytes counts as one to all 16.
 *
 * Blocks may run on several host threads. Beside the accumulators that are added to it takes three quarters of their
 * memory; a release takes about 200 bytes until the launch ends. */
#ifndef FA_GPU_SIMT_ORDER_H
#define FA_GPU_SIMT_ORDER_H

#include "gpu/simt/block.h"

typedef struct fa_simt_order fa_simt_order;

/* NULL: out of memory. */
fa_simt_order *fa_simt_order_make(const fa_simt_launch *launch);
void fa_simt_order_free(fa_simt_order *o); /* NULL is allowed */

/* What the running thread does, for blocks that have an order:
 *   add        to 16 bytes or fewer of a range of the launch; reports the violation
 *   complete   its asynchronous additions to these floats are
 *   release    before it stores the value in the semaphore
 *   wait       has seen the value there */
void fa_simt_order_add(fa_simt_block *b, const void *to, bool asynchronous, fa_simt_place at);
void fa_simt_order_complete(fa_simt_block *b, const float *to, uint32_t n);
void fa_simt_order_release(fa_simt_block *b, const unsigned *semaphore, unsigned value);
void fa_simt_order_wait(fa_simt_block *b, const unsigned *semaphore, unsigned value);

#endif
