/* How much memory a program has taken and not given back, so that what a loop keeps shows. */
#ifndef FA_TESTS_EDGES_TAKEN_H
#define FA_TESTS_EDGES_TAKEN_H

#include "tests/support/check.h"

#include <malloc.h>
#include <pthread.h>
#include <stddef.h>

/* Under sanitizers always 0: they look for leaks themselves. */
static inline size_t bytes_taken(void) {
  const struct mallinfo2 m = mallinfo2();
  return m.uordblks + m.hblkhd;
}

/* What the body has kept when it runs a second time. Each time it has a thread of its own: the C library keeps freed blocks of a thread at
 * hand, which count as taken and are more after each of many rounds, until the thread ends. */
static inline long long bytes_kept(void *(*body)(void *), void *context) {
  size_t before = 0;
  for (int again = 0; again < 2; ++again) {
    pthread_t thread;
    before = bytes_taken();
    REQUIRE(pthread_create(&thread, NULL, body, context) == 0 && pthread_join(thread, NULL) == 0);
  }
  return (long long)bytes_taken() - (long long)before;
}

#endif
