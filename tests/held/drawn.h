/* Arguments drawn for formulas: each is a pure function of the draw and of its place, whatever order a compiler evaluates in. */
#ifndef FA_TESTS_HELD_DRAWN_H
#define FA_TESTS_HELD_DRAWN_H

#include "cases/base/rng.h"

#include <math.h>
#include <stdbool.h>

typedef struct drawn {
  uint64_t number; /* of the draw */
  double zeros;    /* how many of the numbers are 0 */
} drawn;

/* Place `at` of a draw, in (0, 1). */
static inline double drawn_share(const drawn *d, int at) {
  return fa_rng_uniform(d->number, 71, (uint64_t)at);
}

static inline bool drawn_yes(const drawn *d, int at, double p) {
  return fa_rng_uniform(d->number, 72, (uint64_t)at) < p;
}

/* 2^-least .. 2^-most, with all digits. */
static inline double drawn_power(const drawn *d, int at, double least, double most) {
  return exp2(-least - (most - least) * drawn_share(d, at));
}

static inline double drawn_maybe(const drawn *d, int at, double least, double most) {
  return fa_rng_uniform(d->number, 73, (uint64_t)at) < d->zeros ? 0 : drawn_power(d, at, least, most);
}

static inline double drawn_sign(const drawn *d, int at) {
  return drawn_yes(d, at, 0.5) ? 1 : -1;
}

/* 0 .. n - 1 */
static inline int drawn_below(const drawn *d, int at, int n) {
  return (int)(drawn_share(d, at) * n);
}

#endif
