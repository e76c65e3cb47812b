/* One of this program's own backends in a process of its own, which times itself: it is a rival, and has no reason to lie. */
#ifndef FA_FUZZ_TIMING_OWN_H
#define FA_FUZZ_TIMING_OWN_H

#include "cases/recipe/case.h"
#include "fuzz/options/choose_backend.h"

#include <sys/types.h>

/* Zeroed: there is none. */
typedef struct fa_own {
  pid_t pid;
  int to, from;
} fa_own;

/* Must come before this process uses a GPU: a driver does not survive the fork. */
fa_status fa_own_start(fa_own *x, const fa_choice *choice, fa_error *err);
/* Seconds of one call of the case with this data seed: between two events on a GPU (backend cuda), else by the clock.
 * FA_ERR_UNSUPPORTED: it cannot do the case. */
fa_status fa_own_time(fa_own *x, const fa_case *c, unsigned passes, uint64_t seed, int n_threads,
                      double *seconds, fa_error *err);
void fa_own_stop(fa_own *x);

#endif
