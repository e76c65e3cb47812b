/* Where a case's time goes: each step of running a case enters its stage here, and a clock, if started, adds
 * up processor and elapsed time by stage. Without a clock this costs nothing. */
#ifndef FA_FUZZ_JUDGING_STAGE_H
#define FA_FUZZ_JUDGING_STAGE_H

typedef enum fa_stage {
  FA_STAGE_OTHER,    /* generating the case, freeing memory */
  FA_STAGE_DATA,     /* tensors and their data */
  FA_STAGE_COPIES,   /* a copy of them for each run, poisoned */
  FA_STAGE_SUBJECT,  /* the backend */
  FA_STAGE_MEMORY,   /* guards, gaps, inputs */
  FA_STAGE_REPEATS,  /* comparing two runs */
  FA_STAGE_FORWARD,  /* reference and bounds */
  FA_STAGE_BACKWARD, /* the same for the gradients */
  FA_STAGE_COMPARE,
  FA_N_STAGES
} fa_stage;

const char *fa_stage_name(fa_stage s);

typedef struct fa_stage_clock {
  double cpu[FA_N_STAGES], wall[FA_N_STAGES]; /* seconds; cpu is this thread's */
} fa_stage_clock;

/* From now on, adds time to *clock, starting in FA_STAGE_OTHER; NULL stops. One clock per thread. */
void fa_stage_clock_start(fa_stage_clock *clock);
/* Enters stage s. Returns the previous stage, which the caller enters again afterwards. */
fa_stage fa_stage_enter(fa_stage s);

#endif
