#include "fuzz/timing/race.h"

#include "cases/data/build.h"
#include "fuzz/bench/work.h"

#include <string.h>

enum { CACHES = 3 }; /* that a pool fills */

/* What the call needs at least: of the forward, or of forward and backward together. */
static fa_status measure_work(fa_race *x, const fa_race_config *config, fa_error *err) {
  fa_tensors t;
  const fa_status status = fa_case_build(x->c, &t, err);
  if (status != FA_OK) return status;
  const bool backward = x->passes & FA_PASS_BACKWARD;
  x->flops =
      fa_bench_flops(&x->c->problem, &t, false) + (backward ? fa_bench_flops(&x->c->problem, &t, true) : 0);
  x->bytes = fa_bench_bytes(&x->c->problem, &t, backward);
  fa_tensors_free(&t);
  if (config->chip) x->floor = fa_chip_floor(config->chip, x->c->problem.dtype, x->flops, x->bytes);
  return FA_OK;
}

/* Everybody else stands still meanwhile. */
static fa_status take_turn(fa_race *x, const fa_race_config *config, int who, bool warm, fa_turn turn,
                           fa_error *err) {
  for (int i = 0; i < config->n; ++i) fa_participant_freeze(&config->participant[i], i != who);
  return warm ? fa_course_warm(&x->course[who], err) : fa_course_turn(&x->course[who], turn, err);
}

/* The candidate's faults end the race; a rival's only its own part in it. */
static bool goes_on(const fa_race *x) {
  return !x->course[0].why[0] && !x->course[0].none;
}

static fa_status start(fa_race *x, const fa_race_config *config, int i, fa_error *err) {
  fa_participant_freeze(&config->participant[i], false);
  return fa_course_start(&x->course[i], &config->participant[i], x->c, x->passes, config->defences,
                         CACHES * config->cache_bytes, config->n_threads, i == 0 || x->course[0].batch, err);
}

fa_status fa_race_run(fa_race *x, const fa_race_config *config, const fa_case *c, unsigned passes,
                      fa_error *err) {
  memset(x, 0, sizeof *x);
  x->c = c, x->passes = passes;
  for (int i = 0; i < config->n; ++i) x->course[i].who = &config->participant[i];
  fa_status status = measure_work(x, config, err);
  for (int i = 0; status == FA_OK && goes_on(x) && i < config->n; ++i) {
    status = start(x, config, i, err);
    if (status == FA_OK) status = take_turn(x, config, i, true, FA_TURN_WARM, err);
  }
  for (int s = 0; status == FA_OK && goes_on(x) && s < FA_SAMPLES; ++s)
    for (int k = 0; status == FA_OK && goes_on(x) && k < config->n; ++k) /* forth and back */
      status = take_turn(x, config, s % 2 ? config->n - 1 - k : k, false,
                         s == FA_SAMPLES - 1 ? FA_TURN_LAST : FA_TURN_TIMED, err);
  const fa_course *nothing = NULL;
  for (int i = 0; status == FA_OK && i < config->n; ++i)
    if (config->participant[i].role == FA_ROLE_NOTHING) {
      fa_course_finish(&x->course[i], NULL, true, 0);
      nothing = &x->course[i];
    }
  for (int i = 0; status == FA_OK && i < config->n; ++i)
    if (config->participant[i].role != FA_ROLE_NOTHING)
      fa_course_finish(&x->course[i], x->course[i].batch == nothing->batch ? nothing : NULL, config->trusted,
                       x->floor);
  for (int i = 0; i < config->n; ++i) fa_participant_freeze(&config->participant[i], false);
  return status;
}

void fa_race_free(fa_race *x, int n) {
  for (int i = 0; i < n; ++i) fa_course_free(&x->course[i]);
}
