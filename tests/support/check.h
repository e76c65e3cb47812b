/* The complete framework of the test programs: CHECK(condition) counts and prints, check_done() is main's
 * return value. */
#ifndef FA_TESTS_SUPPORT_CHECK_H
#define FA_TESTS_SUPPORT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

/* Weak: one pair for the whole program, so that checks of a helper in another file count too. */
__attribute__((weak)) int check_n_run, check_n_failed;

#define CHECK(e) CHECK_MSG(e, "%s", "")
/* Prints the formatted message if e is false and continues, so that one run shows every failure. */
#define CHECK_MSG(e, ...)                                                                                    \
  do {                                                                                                       \
    ++check_n_run;                                                                                           \
    if (!(e)) {                                                                                              \
      if (++check_n_failed <= 20) {                                                                          \
        fprintf(stderr, "%s:%d: failed: %s ", __FILE__, __LINE__, #e);                                       \
        fprintf(stderr, __VA_ARGS__);                                                                        \
        fputc('\n', stderr);                                                                                 \
      }                                                                                                      \
    }                                                                                                        \
  } while (0)
/* For conditions that the rest of the test depends on. */
#define REQUIRE(e)                                                                                           \
  do {                                                                                                       \
    ++check_n_run;                                                                                           \
    if (!(e)) {                                                                                              \
      fprintf(stderr, "%s:%d: required: %s\n", __FILE__, __LINE__, #e);                                      \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

/* A program without checks has failed. */
static inline int check_done(void) {
  printf("%d checks, %d failed\n", check_n_run, check_n_failed);
  return check_n_failed != 0 || check_n_run == 0;
}

#endif
