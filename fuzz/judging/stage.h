/* Where a case's time goes: the steps of running one announce themselves here, and a clock that somebody
 * started adds up processor and elapsed time of each. Without a clock, announcing costs nothing. */
#ifndef FA_FUZZ_JUDGING_STAGE_H
#define FA_FUZZ_JUDGING_STAGE_H

typedef enum fa_stage {
  FA_STAGE_OTHER,    /* generating the case, freeing memory */
  FA_STAGE_DATA,     /* tensors and what is in them */
  FA_STAGE_COPIES,   /* a copy of them for each run, poisoned */
  FA_STAGE_SUBJECT,  /* the backend */
  FA_STAGE_MEMORY,   /* guards, gaps, inputs */
  FA_STAGE_REPEATS,  /* two runs against each other */
  FA_STAGE_FORWARD,  /* reference and bounds */
  FA_STAGE_BACKWARD, /* the same of the gradients */
  FA_STAGE_COMPARE,
  FA_N_STAGES
} fa_stage;

const char *fa_stage_name(fa_stage s);

typedef struct fa_stage_clock {
  double cpu[FA_N_STAGES], wall[FA_N_STAGES]; /* seconds; cpu is the whole process's */
} fa_stage_clock;

/* From now on time is added to *clock, which begins in FA_STAGE_OTHER; NULL stops. One clock a process. */
void fa_stage_clock_start(fa_stage_clock *clock);
/* What follows belongs to s. Returns what came before, to be entered again afterwards. */
fa_stage fa_stage_enter(fa_stage s);

#endif
