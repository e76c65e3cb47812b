/* malloc and its kin as the linker substitutes them (--wrap) in test_memory.c: blocks are counted, begin as garbage that is no number,
 * and have a guard behind them; an allocation can be made to fail. */
#ifndef FA_TESTS_HELD_GUARDED_H
#define FA_TESTS_HELD_GUARDED_H

#include <stdbool.h>

/* Blocks that are not freed yet. */
long guarded_live(void);
/* The allocation after so many others fails; < 0: none. */
void guarded_fail_after(long n);
/* Whether it is still to come. */
bool guarded_waits(void);

#endif
