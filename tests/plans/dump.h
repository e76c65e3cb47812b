/* What the parts of plan_dump share: tests/plans/dump.c has the program and the host's launches,
 * tests/plans/dump_cuda.c those of a device that is not there. */
#ifndef FA_TESTS_PLANS_DUMP_H
#define FA_TESTS_PLANS_DUMP_H

#include "gpu/backend.h"
#include "tests/plans/params.h"

typedef struct plan_launch {
  const char *kernel;
  const char
      *unit; /* what of its source is compiled at run time; "": it was ahead of time, NULL: no device */
  unsigned grid[3], block[3], cluster;
  size_t shared_bytes;
  bool overlaps; /* it may begin before the one before has ended */
  const void *params;
  const char *writes; /* places that it may write to, NULL: not known */
  plan_places places;
} plan_launch;

/* Prints the launch in place of making it. */
void plan_launched(const plan_launch *l);

/* Puts the device in place of the driver. words: "sm_80,processors=108,shared=163,off", any of them or NULL.
 * Returns false where it does not understand them. */
bool plan_cuda_start(const char *words);
/* The first rule of the driver's that was broken since, or "". */
const char *plan_cuda_misuse(void);
/* True once so much memory is held that the backend should be opened anew: it is cleared for every case. */
bool plan_cuda_is_large(void);

#endif
