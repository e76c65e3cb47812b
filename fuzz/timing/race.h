/* One case and pass: the candidate and its rivals by turns. */
#ifndef FA_FUZZ_TIMING_RACE_H
#define FA_FUZZ_TIMING_RACE_H

#include "fuzz/machine/chip.h"
#include "fuzz/timing/course.h"

enum { FA_MOST_RIVALS = 6, FA_MOST_PARTICIPANTS = FA_MOST_RIVALS + 2 };

/* What is the same for all cases. */
typedef struct fa_race_config {
  fa_participant *participant; /* the candidate, the child that does nothing, rivals */
  int n;
  fa_defence_set defences;
  bool trusted;
  int n_threads;
  const fa_chip *chip; /* NULL: unknown */
  double cache_bytes;  /* the last cache that tensors pass through */
} fa_race_config;

typedef struct fa_race {
  const fa_case *c;
  unsigned passes;
  fa_course course[FA_MOST_PARTICIPANTS]; /* as the participants */
  double flops, bytes, floor;             /* floor: seconds; 0 = unknown */
} fa_race;

/* The race is freed in any case. What is wrong with an answer is in its course; an error is one of the world. */
fa_status fa_race_run(fa_race *x, const fa_race_config *config, const fa_case *c, unsigned passes,
                      fa_error *err);
void fa_race_free(fa_race *x, int n);

#endif
