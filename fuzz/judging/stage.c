#include "fuzz/judging/stage.h"

#include <stddef.h>
#include <time.h>

static _Thread_local struct {
  fa_stage_clock *clock;
  fa_stage now;
  double cpu, wall; /* when it began */
} state;

const char *fa_stage_name(fa_stage s) {
  static const char *const names[FA_N_STAGES] = {[FA_STAGE_OTHER] = "the rest",
                                                 [FA_STAGE_DATA] = "data",
                                                 [FA_STAGE_COPIES] = "copies, poison",
                                                 [FA_STAGE_SUBJECT] = "the subject, twice",
                                                 [FA_STAGE_MEMORY] = "guards, gaps, inputs",
                                                 [FA_STAGE_REPEATS] = "repeats",
                                                 [FA_STAGE_FORWARD] = "reference and bounds, forward",
                                                 [FA_STAGE_BACKWARD] = "reference and bounds, backward",
                                                 [FA_STAGE_COMPARE] = "comparison"};
  return names[s];
}

static double seconds(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Adds the time since the last call to the current stage. */
static void add_up(void) {
  const double cpu = seconds(CLOCK_THREAD_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
  state.clock->cpu[state.now] += cpu - state.cpu;
  state.clock->wall[state.now] += wall - state.wall;
  state.cpu = cpu;
  state.wall = wall;
}

void fa_stage_clock_start(fa_stage_clock *clock) {
  if (state.clock) add_up();
  state.clock = clock;
  state.now = FA_STAGE_OTHER;
  state.cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
  state.wall = seconds(CLOCK_MONOTONIC);
}

fa_stage fa_stage_enter(fa_stage s) {
  const fa_stage before = state.now;
  if (state.clock) add_up();
  state.now = s;
  return before;
}
