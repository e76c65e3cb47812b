/* What keeps a timing honest, by name. All are in force; --without leaves one out, so that tests can show what each is for. */
#ifndef FA_FUZZ_TIMING_DEFENCES_H
#define FA_FUZZ_TIMING_DEFENCES_H

#include "cases/base/status.h"

#include <stdbool.h>

typedef enum fa_defence {
  FA_DEFENCE_CHAIN, /* every request has new data, which depend on the answer before; without: always the same */
  FA_DEFENCE_POOL,   /* tensors move through a pool of places; without: one place */
  FA_DEFENCE_WARMUP, /* warm-ups look like the rest; without: five plain calls, and these alone are judged */
  FA_DEFENCE_SAMPLE, /* timed outputs are judged, drawn at random; without: only the very last */
  FA_DEFENCE_CLAIM, /* a time that the child claims is held against the clock, and its sums against its outputs */
  FA_N_DEFENCES
} fa_defence;

/* A set: bit d is defence d. */
typedef unsigned fa_defence_set;
#define FA_ALL_DEFENCES ((1u << FA_N_DEFENCES) - 1)

static inline bool fa_defence_in(fa_defence_set set, fa_defence d) {
  return set >> d & 1;
}

const char *fa_defence_name(fa_defence d);
/* Takes the defence of this name out of the set. False: there is none of this name. */
bool fa_defence_leave_out(fa_defence_set *set, const char *name);

#endif
