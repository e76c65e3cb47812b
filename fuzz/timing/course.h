/* One participant in one case: its samples, and what was found about its answers. */
#ifndef FA_FUZZ_TIMING_COURSE_H
#define FA_FUZZ_TIMING_COURSE_H

#include "fuzz/machine/nvml.h"
#include "fuzz/timing/check.h"
#include "fuzz/timing/defences.h"
#include "fuzz/timing/link.h"
#include "fuzz/timing/order.h"
#include "fuzz/timing/participant.h"
#include "fuzz/timing/pool.h"

enum { FA_SAMPLES = 30 };

/* Where an answer stands among all of them. */
typedef enum fa_turn {
  FA_TURN_WARM,
  FA_TURN_TIMED,
  FA_TURN_LAST /* the last that is timed: always judged */
} fa_turn;

typedef struct fa_course {
  fa_participant *who;
  const fa_case *c;
  unsigned passes;
  int n_threads;
  fa_defence_set defences;
  bool
      batch; /* many problems a request, on tensors that lie there already; else one call each, copied both ways */
  bool none; /* it does not take part: why says why not */

  fa_declaration said;
  fa_profile profile;
  fa_case drawn; /* the case with the seed of the last data */
  fa_link link;
  double pool_wanted; /* bytes */
  int n_places, last_place;
  size_t place_bytes;
  fa_pool pool; /* batch */
  int most;     /* problems of a request */

  double wall[FA_SAMPLES], claim[FA_SAMPLES]; /* seconds a problem; claim < 0: none */
  double least; /* batch: seconds a problem of the timed request that took least */
  int n, n_warm;
  int64_t n_timed, n_judged, n_outputs; /* timed outputs; of these, judged; all that came, warm-ups too */
  double judging;                       /* seconds that fetching and judging one output took at first */
  char by[12], why[600];                /* no speed: which defence found what; "" = fine */
  char kernel[128];

  fa_gpu_state gpu;             /* at the candidate's last answer */
  unsigned long long throttled; /* any of NVML's bits at any of them */
  int least_mhz, most_mhz;      /* of the GPU's clock then; 0: unknown */

  fa_median time, clock,
      claimed; /* after the end: what counts; by our clock, less what a child takes that does nothing; its own */
} fa_course;

/* c and who stay the caller's. many: many problems a request, if it can do that. FA_OK with x->none: it cannot do the case. */
fa_status fa_course_start(fa_course *x, fa_participant *who, const fa_case *c, unsigned passes,
                          fa_defence_set defences, double pool_bytes, int n_threads, bool many,
                          fa_error *err);
/* Warm-ups, as many as nobody knows. */
fa_status fa_course_warm(fa_course *x, fa_error *err);
/* One sample. Nothing happens once something was found. */
fa_status fa_course_turn(fa_course *x, fa_turn turn, fa_error *err);
/* Puts the samples together. nothing: what a child took that does nothing, or NULL; trusted: a claim that fits the clock
 * counts; floor: seconds that it cannot be faster than, 0 = unknown. */
void fa_course_finish(fa_course *x, const fa_course *nothing, bool trusted, double floor);
void fa_course_free(fa_course *x);

/* ---- for the two kinds of turns ---- */

/* One call with new data: the sample's seconds. chain.c */
fa_status fa_chain_turn(fa_course *x, fa_turn turn, bool judged, double *wall, fa_error *err);
/* Two requests, of one problem and of many: seconds of each further problem. batch.c */
fa_status fa_batch_start(fa_course *x, fa_error *err);
fa_status fa_batch_turn(fa_course *x, fa_turn turn, double *wall, double *claim, fa_error *err);
/* Notes how the GPU is doing, right after the candidate has answered. */
void fa_course_watch(fa_course *x);
/* Whether an output of this turn is to be judged: drawn anew each time. */
bool fa_course_draws(const fa_course *x, fa_turn turn);
/* Judges one, and notes what is wrong. since: when work on it began, on fa_seconds_now's clock; what the first one took says how
 * many there is time for. */
fa_status fa_course_judge(fa_course *x, const fa_tensors *in, const fa_tensors *got, double scale,
                          fa_turn turn, double since, fa_error *err);
void fa_course_fault(fa_course *x, const char *by, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
