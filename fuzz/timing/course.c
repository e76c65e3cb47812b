#include "fuzz/timing/course.h"

#include "cases/data/build.h"
#include "fuzz/judging/delivered.h"
#include "report/text/progress.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEWEST_WARM = 3, MORE_WARM = 6, PLAIN_WARM = 5, MOST_PLACES_OF_REGION = 64 };
#define REGION_BYTES ((double)(1 << 29)) /* that a pool in the region may take */
#define JUDGING_SECONDS 20.0             /* for the timed outputs of one participant in one case */
#define SMALLEST_SHARE 0.05
#define CLAIM_SHARE 0.8        /* of the clock's time, that a claim may not be below */
#define UNCLAIMED_SECONDS 4e-5 /* a problem: what calling and summing may take beyond a claim */
#define PATIENCE 300           /* seconds for one answer */

void fa_course_fault(fa_course *x, const char *by, const char *format, ...) {
  va_list args;
  if (x->why[0]) return;
  va_start(args, format);
  vsnprintf(x->why, sizeof x->why, format, args);
  va_end(args);
  snprintf(x->by, sizeof x->by, "%s", by);
}

void fa_course_watch(fa_course *x) {
  if (x->who->role != FA_ROLE_CANDIDATE) return;
  fa_gpu_state_read(&x->gpu);
  if (!x->gpu.known) return;
  x->throttled |= x->gpu.throttle;
  if (!x->least_mhz || x->gpu.sm_mhz < x->least_mhz) x->least_mhz = x->gpu.sm_mhz;
  if (x->gpu.sm_mhz > x->most_mhz) x->most_mhz = x->gpu.sm_mhz;
}

/* ---- judging ---- */

/* At least one in twenty; all, if there is time for all. */
static double share_of(const fa_course *x) {
  const double n = x->batch ? FA_SAMPLES * (0.75 * x->most + 1) : FA_SAMPLES;
  const double share = x->judging > 0 ? JUDGING_SECONDS / (x->judging * n) : 1;
  return share < SMALLEST_SHARE ? SMALLEST_SHARE : share > 1 ? 1 : share;
}

bool fa_course_draws(const fa_course *x, fa_turn turn) {
  if (x->who->role == FA_ROLE_NOTHING) return false;
  if (!fa_defence_in(x->defences, FA_DEFENCE_WARMUP)) return false;
  if (turn == FA_TURN_LAST) return true;
  if (turn == FA_TURN_TIMED && !fa_defence_in(x->defences, FA_DEFENCE_SAMPLE)) return false;
  if (turn == FA_TURN_WARM && x->judging == 0) return true; /* the first tells what judging costs */
  return (double)fa_secret_below(1 << 30) < share_of(x) * (1 << 30);
}

fa_status fa_course_judge(fa_course *x, const fa_tensors *in, const fa_tensors *got, double scale,
                          fa_turn turn, double since, fa_error *err) {
  char why[400];
  const fa_check check = {.c = x->c,
                          .scale = scale,
                          .said = &x->said,
                          .profile = &x->profile,
                          .passes = x->passes,
                          .n_threads = x->n_threads};
  const fa_status status = fa_check_output(&check, in, got, why, sizeof why, err);
  if (x->judging == 0) x->judging = fa_seconds_now() - since;
  if (turn != FA_TURN_WARM) ++x->n_judged;
  if (status == FA_OK && why[0])
    fa_course_fault(x, "sample", "answer %lld is wrong: %s", (long long)x->n_outputs, why);
  return status;
}

/* ---- start ---- */

/* Whether the child can be handed many problems at once: none of them changes what it was handed. */
static bool can_batch(const fa_course *x) {
  const fa_hello *h = &x->who->exec->hello;
  return h->times && h->version > 1 && !h->files && !fa_tensor_is_updated(&x->c->problem, FA_T_K);
}

static fa_status start_chain(fa_course *x, fa_error *err) {
  fa_tensors t;
  const fa_status status = fa_case_build(&x->drawn, &t, err);
  size_t bytes = 0;
  if (status != FA_OK) return status;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (t.buffer[id].base) bytes += (2 * FA_GUARD_BYTES + t.buffer[id].bytes + 8191) / 4096 * 4096;
  fa_tensors_free(&t);
  const double wanted = x->pool_wanted / (double)bytes + 1, room = REGION_BYTES / (double)bytes;
  const double n = wanted < room ? wanted : room;
  x->place_bytes = bytes;
  x->n_places = n < 1 ? 1 : n > MOST_PLACES_OF_REGION ? MOST_PLACES_OF_REGION : (int)n;
  if (x->n_places < 2) x->n_places = 2;
  if (!fa_defence_in(x->defences, FA_DEFENCE_POOL)) x->n_places = 1;
  return FA_OK;
}

/* What the child says of the case. False: it cannot do it. */
static bool ask_child(fa_course *x) {
  fa_exec_subject *child = x->who->exec;
  char why[256] = "";
  child->patience = PATIENCE;
  if ((fa_exec_supports(child, &x->c->problem, why, sizeof why) & x->passes) != x->passes) {
    snprintf(x->why, sizeof x->why, "%s", why[0] ? why : "not supported");
    return false;
  }
  fa_exec_declare(child, &x->c->problem, &x->said);
  fa_exec_profile(child, &x->c->problem, &x->profile);
  x->batch = x->batch && can_batch(x);
  return true;
}

fa_status fa_course_start(fa_course *x, fa_participant *who, const fa_case *c, unsigned passes,
                          fa_defence_set defences, double pool_bytes, int n_threads, bool many,
                          fa_error *err) {
  memset(x, 0, sizeof *x);
  *x = (fa_course){.who = who,
                   .c = c,
                   .passes = passes,
                   .defences = defences,
                   .pool_wanted = pool_bytes,
                   .n_threads = n_threads,
                   .batch = many};
  fa_status status = fa_case_copy(&x->drawn, c);
  if (status != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  status = fa_link_start(&x->link, !fa_defence_in(defences, FA_DEFENCE_CHAIN), err);
  if (status != FA_OK || !who->exec) return status;
  if (!ask_child(x)) {
    x->none = true;
    return FA_OK;
  }
  return x->batch ? fa_batch_start(x, err) : start_chain(x, err);
}

void fa_course_free(fa_course *x) {
  fa_pool_free(&x->pool);
  fa_case_free(&x->drawn);
}

/* ---- turns ---- */

static fa_status own_turn(fa_course *x, double *wall, fa_error *err) {
  const fa_status status =
      fa_own_time(&x->who->own, x->c, x->passes, fa_link_seed(&x->link), x->n_threads, wall, err);
  if (status != FA_ERR_UNSUPPORTED) return status;
  x->none = true;
  snprintf(x->why, sizeof x->why, "%s", err->text);
  return FA_OK;
}

static fa_status sample(fa_course *x, fa_turn turn, double *wall, double *claim, fa_error *err) {
  *wall = 0, *claim = -1;
  if (!x->who->exec) return own_turn(x, wall, err);
  if (x->batch) return fa_batch_turn(x, turn, wall, claim, err);
  const bool judged = fa_course_draws(x, turn);
  if (turn != FA_TURN_WARM) ++x->n_timed;
  return fa_chain_turn(x, turn, judged, wall, err);
}

/* Without the defence: the classical order, in which a few plain calls are judged and then nothing is. */
static fa_status warm_plainly(fa_course *x, fa_error *err) {
  fa_status status = FA_OK;
  const bool judged = x->who->role != FA_ROLE_NOTHING;
  double wall;
  if (!x->who->exec) return FA_OK;
  for (int i = 0; status == FA_OK && !x->why[0] && i < PLAIN_WARM; ++i)
    status = fa_chain_turn(x, FA_TURN_WARM, judged, &wall, err);
  x->n_warm = PLAIN_WARM;
  return status;
}

fa_status fa_course_warm(fa_course *x, fa_error *err) {
  double wall, claim;
  fa_status status = FA_OK;
  if (x->none) return FA_OK;
  const bool hidden = fa_defence_in(x->defences, FA_DEFENCE_WARMUP);
  if (!hidden) status = warm_plainly(x, err);
  const int n = hidden ? FEWEST_WARM + (int)fa_secret_below(MORE_WARM) : 0;
  for (int i = 0; status == FA_OK && !x->why[0] && i < n; ++i, ++x->n_warm)
    status = sample(x, FA_TURN_WARM, &wall, &claim, err);
  return status;
}

fa_status fa_course_turn(fa_course *x, fa_turn turn, fa_error *err) {
  double wall, claim;
  if (x->none || x->why[0] || x->n == FA_SAMPLES) return FA_OK;
  const fa_status status = sample(x, turn, &wall, &claim, err);
  if (status != FA_OK || x->why[0]) return status;
  x->wall[x->n] = wall;
  x->claim[x->n++] = claim;
  return FA_OK;
}

/* ---- the end ---- */

static fa_median less(fa_median x, double seconds) {
  x.median -= seconds, x.low -= seconds, x.high -= seconds;
  return x;
}

/* Whether what the child claims may stand for what the clock says. It is held against the request that took least, because on a
 * busy machine the clock only ever adds. The clock also has what calling and summing take, which of short problems is much:
 * then the clock's time is taken, and nobody is accused. */
static bool claim_holds(fa_course *x) {
  if (x->claimed.median >= CLAIM_SHARE * x->least) return true;
  if (x->least - x->claimed.median > UNCLAIMED_SECONDS)
    fa_course_fault(x, "claim",
                    "it says that a problem takes %.4g us, but by the clock it never took less than %.4g",
                    x->claimed.median * 1e6, x->least * 1e6);
  return false;
}

void fa_course_finish(fa_course *x, const fa_course *nothing, bool trusted, double floor) {
  const bool checks = fa_defence_in(x->defences, FA_DEFENCE_CLAIM);
  bool claims = x->batch && x->n > 0;
  if (x->none || x->why[0] || x->n == 0) return;
  for (int i = 0; i < x->n; ++i) claims = claims && x->claim[i] >= 0;
  x->clock = fa_median_of(x->wall, x->n);
  if (nothing && nothing->n > 0 && x->who->exec) x->clock = less(x->clock, fmax(nothing->clock.median, 0));
  x->time = x->clock;
  if (claims) x->claimed = fa_median_of(x->claim, x->n);
  const bool holds = claims && (!checks || claim_holds(x));
  if (holds && (trusted || !checks)) x->time = x->claimed;
  if (!x->why[0] && x->who->role != FA_ROLE_NOTHING && x->time.median <= 0)
    fa_course_fault(x, "nothing", "it is as fast as a child that does nothing");
  if (!x->why[0] && floor > 0 && x->time.median < floor)
    fa_course_fault(x, "floor", "INVALID: %.4g us is less than the %.4g us that the machine needs at least",
                    x->time.median * 1e6, floor * 1e6);
}
