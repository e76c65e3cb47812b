/* Shared by the parts of plan_dump: tests/plans/dump.c has the program and the host's launches,
 * tests/plans/dump_cuda.c those of the fake device. */
#ifndef FA_TESTS_PLANS_DUMP_H
#define FA_TESTS_PLANS_DUMP_H

#include "gpu/backend.h"
#include "tests/plans/params.h"

typedef struct plan_launch {
  const char *kernel;
  const char
      *unit; /* the part of its source compiled at run time; "": compiled ahead of time, NULL: no device */
  unsigned grid[3], block[3], cluster;
  size_t shared_bytes;
  bool overlaps; /* it may start before the previous one has ended */
  const void *params;
  const char *writes; /* memory that it may write to, NULL: unknown */
  plan_places places;
} plan_launch;

/* Prints the launch instead of making it. */
void plan_launched(const plan_launch *l);

/* Replaces the driver by the fake device. words: "sm_80,processors=108,shared=163,off", any of them or NULL.
 * Returns false if it does not understand them. */
bool plan_cuda_start(const char *words);
/* The first violation of the driver's rules since then, or "". */
const char *plan_cuda_misuse(void);
/* True once so much memory is in use that the backend should be opened anew: all of it is cleared for every
 * case. */
bool plan_cuda_is_large(void);

#endif
