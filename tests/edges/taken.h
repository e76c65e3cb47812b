/* How much memory a program has taken and not given back, so that what a loop keeps shows. */
#ifndef FA_TESTS_EDGES_TAKEN_H
#define FA_TESTS_EDGES_TAKEN_H

#include <malloc.h>
#include <stddef.h>

/* Under sanitizers always 0: they look for leaks themselves. */
static inline size_t bytes_taken(void) {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

#endif
