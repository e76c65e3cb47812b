/* The shrinker's course: measures how reliably the case fails, runs passes until none helps, then measures
 * how reliably the shrunk case fails. */
#include "fuzz/shrink/reduce.h"
#include "cases/codec/json.h"

#include "fuzz/shrink/run.h"
#include "report/text/progress.h"

#include <stdlib.h>
#include <string.h>

typedef struct course {
  fa_shrinker run;
  fa_shrink_goal goal;
  fa_case best;
  int64_t steps;
} course;

static fa_status no_memory(fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "shrink: out of memory");
}

/* ---- one pass ---- */

/* Copies best and applies proposal i; false: there is none, or the case is invalid. */
static bool propose(const course *x, const fa_shrink_pass *pass, int64_t i, fa_case *out, fa_status *status) {
  *status = fa_case_copy(out, &x->best);
  if (*status != FA_OK) return false;
  fa_error ignored;
  bool good = fa_shrink_pass_edit(pass, out, i, &x->goal);
  if (good) fa_shrink_mend(out, &x->goal);
  good = good && fa_case_validate(out, &ignored) == FA_OK && !fa_case_equal(out, &x->best);
  if (!good) fa_case_free(out);
  return good;
}

static void say_step(const course *x, const char *pass) {
  FILE *out = x->run.config->progress;
  const fa_problem *p = &x->best.problem;
  if (!out) return;
  fprintf(out, "shrink: %lld runs, %.1f s: %s: %lld x %lld/%lld heads, %lld x %lld, head_dim %lld\n",
          (long long)x->run.total_runs, fa_seconds_now() - x->run.started, pass, (long long)p->batch,
          (long long)p->heads_q, (long long)p->heads_kv, (long long)p->seqlen_q, (long long)p->seqlen_k,
          (long long)p->head_dim);
}

/* Collects proposals from number *at on, as many as fit into one round; *at moves past the last. */
static fa_status collect(const course *x, const fa_shrink_pass *pass, int64_t *at, fa_case *v,
                         int64_t *number, int *n) {
  const int64_t count = fa_shrink_pass_count(pass, &x->best);
  fa_status status = FA_OK;
  for (*n = 0; *at < count && *n < FA_SHRINK_ROUND && status == FA_OK; ++*at) {
    if (!propose(x, pass, *at, &v[*n], &status)) continue;
    number[(*n)++] = *at;
  }
  return status;
}

static fa_status run_pass(course *x, const fa_shrink_pass *pass, bool *changed, fa_error *err) {
  fa_case *v = malloc(FA_SHRINK_ROUND * sizeof *v);
  int64_t number[FA_SHRINK_ROUND], at = 0;
  fa_status status = v ? FA_OK : no_memory(err);
  while (status == FA_OK && !fa_shrinker_time_is_over(&x->run)) {
    int n, n_seen = 0, winner = -1;
    uint64_t seed = x->run.seed;
    if (collect(x, pass, &at, v, number, &n) != FA_OK) status = no_memory(err);
    if (status == FA_OK && n > 0) status = fa_shrinker_try(&x->run, v, n, &n_seen, &winner, &seed, err);
    if (status == FA_OK && winner >= 0) {
      fa_case_free(&x->best);
      x->best = v[winner];
      v[winner] = (fa_case){0};
      x->run.seed = seed;
      x->steps++;
      *changed = true;
      say_step(x, pass->name);
      at = number[winner] + 1;
    } else if (status == FA_OK && n_seen < n) {
      at = number[n_seen];
    }
    for (int i = 0; i < n; ++i) fa_case_free(&v[i]);
    if (n == 0) break;
  }
  free(v);
  return status;
}

static fa_status run_passes(course *x, const fa_shrink_pass *passes, bool *changed, fa_error *err) {
  fa_status status = FA_OK;
  for (; passes->name && status == FA_OK; ++passes) status = run_pass(x, passes, changed, err);
  return status;
}

/* Typed passes to a fixpoint, then rows, then again what the rows made possible. */
static fa_status run_all(course *x, fa_error *err) {
  fa_status status = FA_OK;
  for (bool rows_too = true, changed = true; status == FA_OK && changed;) {
    changed = false;
    status = run_passes(x, fa_shrink_bold, &changed, err);
    if (status == FA_OK) status = run_passes(x, fa_shrink_features, &changed, err);
    if (status == FA_OK) status = run_passes(x, fa_shrink_numbers, &changed, err);
    if (status == FA_OK) status = run_passes(x, fa_shrink_expressions, &changed, err);
    if (status == FA_OK) status = run_passes(x, fa_shrink_fills, &changed, err);
    if (status == FA_OK && !changed && rows_too) {
      rows_too = false;
      status = run_passes(x, fa_shrink_data, &changed, err);
    }
    if (fa_shrinker_time_is_over(&x->run)) break;
  }
  return status;
}

/* ---- how reliably it fails ---- */

/* Large cases are run repeatedly only if no small one fails like them. */
#define EXPENSIVE_S 1

/* Looks for a small case that surely fails like the given one, which then need not be run again. *found. */
static fa_status try_bold(course *x, bool *found, fa_error *err) {
  fa_case given;
  bool changed = false;
  int n_failed = 0;
  *found = false;
  if (fa_case_copy(&given, &x->best) != FA_OK) return no_memory(err);
  fa_shrinker_set_rule(&x->run, FA_TRIAL_ONCE);
  fa_status status = run_passes(x, fa_shrink_bold, &changed, err);
  if (status == FA_OK && changed) status = fa_shrinker_count(&x->run, &x->best, false, &n_failed, err);
  *found = status == FA_OK && n_failed == FA_SHRINK_TRIES;
  if (!*found) {
    fa_case_free(&x->best);
    x->best = given;
    x->run.seed = x->run.config->schedule_seed;
  } else {
    fa_case_free(&given);
  }
  return status;
}

/* Runs the given case and chooses the rule. */
static fa_status establish(course *x, fa_shrink_result *out, fa_error *err) {
  int n_failed = 0, n_same = 0;
  fa_status status = fa_shrinker_count(&x->run, &x->best, false, &n_failed, err);
  if (status == FA_OK && n_failed == 0 && x->run.config->known && fa_state_is_failure(x->run.last_state)) {
    x->run.has_failure = false; /* it fails, but not as reported: use the present failure */
    status = fa_shrinker_count(&x->run, &x->best, false, &n_failed, err);
  }
  out->n_failed = n_failed;
  out->n_runs = FA_SHRINK_TRIES;
  if (status != FA_OK || x->run.interrupted) return status;
  if (x->run.last_state == FA_ERROR && n_failed == 0)
    return fa_fail(err, FA_ERR_DEVICE, "%s", x->run.last_reason);
  if (x->run.last_state == FA_SKIP) {
    out->outcome = FA_SHRINK_SKIPPED;
    snprintf(out->reason, sizeof out->reason, "%s", x->run.last_reason);
    return FA_OK;
  }
  out->outcome = FA_SHRINK_DONE;
  fa_shrinker_set_rule(&x->run, FA_TRIAL_ONCE);
  if (n_failed == FA_SHRINK_TRIES) return FA_OK;
  fa_shrinker_set_rule(&x->run, FA_TRIAL_MAJORITY);
  if (n_failed >= FA_SHRINK_ENOUGH) return FA_OK;
  /* It rarely fails with other schedules: try the reported one. */
  status = fa_shrinker_count(&x->run, &x->best, true, &n_same, err);
  fa_shrinker_set_rule(&x->run, FA_TRIAL_ANY);
  if (status != FA_OK || n_same == FA_SHRINK_TRIES) return status;
  out->n_failed = n_failed > n_same ? n_failed : n_same;
  out->outcome = out->n_failed ? FA_SHRINK_FLAKY : FA_SHRINK_PASSES;
  return FA_OK;
}

/* Multiplications of a forward pass that take the host executor a second. */
#define EXPENSIVE_WORK 2e8

/* Finds the failure class of a case that has not been run. A large case runs its forward pass first: if that
 * fails, it determines the class, and the backward, three times the work, is not needed. */
static fa_status find_class(course *x, fa_error *err) {
  const fa_problem *p = &x->best.problem;
  const double work =
      (double)fa_problem_total_q(p) * (double)p->seqlen_k * (double)p->heads_q * (double)p->head_dim;
  int n_seen, winner = -1;
  uint64_t seed;
  fa_case forward;
  fa_shrinker_set_rule(&x->run, FA_TRIAL_ONCE);
  if (p->backward && work > EXPENSIVE_WORK) {
    if (fa_case_copy(&forward, &x->best) != FA_OK) return no_memory(err);
    forward.problem.backward = false;
    fa_shrink_mend(&forward, &x->goal);
    fa_status status = fa_shrinker_try(&x->run, &forward, 1, &n_seen, &winner, &seed, err);
    if (winner >= 0) {
      fa_case_free(&x->best);
      x->best = forward;
      x->steps++;
      say_step(x, "forward alone");
      return status;
    }
    fa_case_free(&forward);
    if (status != FA_OK) return status;
  }
  return fa_shrinker_try(&x->run, &x->best, 1, &n_seen, &winner, &seed, err);
}

static fa_status begin(course *x, fa_shrink_result *out, fa_error *err) {
  const fa_shrink_config *config = x->run.config;
  bool found = false;
  fa_status status = FA_OK;
  if (config->known) {
    x->run.failure = x->goal.failure = *config->known;
    x->run.has_failure = true;
  } else {
    status = find_class(x, err);
    x->goal.failure = x->run.failure;
  }
  const bool expensive = config->known || x->run.slowest_s > EXPENSIVE_S;
  if (status == FA_OK && x->run.has_failure && expensive) status = try_bold(x, &found, err);
  out->outcome = FA_SHRINK_DONE;
  if (status == FA_OK && !found) status = establish(x, out, err);
  x->goal.failure = x->run.failure;
  x->goal.keep_schedule = x->run.rule == FA_TRIAL_ANY;
  return status;
}

/* ---- the end ---- */

/* A schedule that does not matter should not be named. */
static fa_status drop_schedule(course *x, fa_error *err) {
  const uint64_t seed = x->run.seed;
  int n_seen, winner;
  uint64_t found;
  if (seed == 0 || x->run.rule != FA_TRIAL_ONCE || fa_shrinker_time_is_over(&x->run)) return FA_OK;
  fa_shrinker_set_rule(&x->run, FA_TRIAL_ONCE); /* known verdicts are about the other schedule */
  x->run.seed = 0;
  fa_status status = fa_shrinker_try(&x->run, &x->best, 1, &n_seen, &winner, &found, err);
  if (winner < 0) x->run.seed = seed;
  return status;
}

/* Runs the result FA_SHRINK_TRIES times, for the record, even if the time for shrinking is over. */
static fa_status finish(course *x, const char *name, fa_shrink_result *out, fa_error *err) {
  const bool same_seed = x->run.rule == FA_TRIAL_ANY;
  fa_status status = FA_OK;
  out->out_of_time = !x->run.interrupted && fa_shrinker_time_is_over(&x->run);
  out->n_failed = out->n_runs = 0;
  if (!x->run.interrupted) {
    if (x->run.last) fa_result_free(x->run.last);
    free(x->run.last);
    x->run.last = NULL;
    status = fa_shrinker_count(&x->run, &x->best, same_seed, &out->n_failed, err);
    out->n_runs = FA_SHRINK_TRIES;
  }
  if (status == FA_OK && fa_case_set_name(&x->best, name) != FA_OK) status = no_memory(err);
  out->last = x->run.last;
  x->run.last = NULL;
  if (status != FA_OK || !out->last) return status;
  free(out->last->name);
  free(out->last->case_line);
  out->last->name = strdup(name);
  out->last->case_line = fa_case_to_line(&x->best);
  return out->last->name && out->last->case_line ? FA_OK : no_memory(err);
}

/* Without name and note, which do not affect the failure. */
static fa_status start_from(course *x, const fa_case *c, fa_error *err) {
  if (fa_case_copy(&x->best, c) != FA_OK) return no_memory(err);
  x->best.name[0] = x->best.note[0] = 0;
  x->goal.default_scale = c->problem.scale == fa_default_scale(c->problem.head_dim);
  return FA_OK;
}

fa_status fa_shrink(const fa_case *c, const fa_shrink_config *config, fa_shrink_result *out, fa_error *err) {
  memset(out, 0, sizeof *out);
  course *x = calloc(1, sizeof *x);
  if (!x) return no_memory(err);
  fa_status status = fa_shrinker_open(&x->run, config, err);
  if (status == FA_OK) status = start_from(x, c, err);
  if (status == FA_OK) status = begin(x, out, err);
  if (status == FA_OK && out->outcome == FA_SHRINK_DONE) {
    status = drop_schedule(x, err);
    if (status == FA_OK) status = run_all(x, err);
    if (status == FA_OK) status = finish(x, c->name, out, err);
  }
  out->c = x->best;
  out->schedule_seed = x->run.seed;
  out->failure = x->run.failure;
  out->total_runs = x->run.total_runs;
  out->steps = x->steps;
  out->seconds = fa_seconds_now() - x->run.started;
  out->interrupted = x->run.interrupted;
  fa_shrinker_close(&x->run);
  free(x);
  if (status != FA_OK) fa_shrink_result_free(out);
  return status;
}

void fa_shrink_result_free(fa_shrink_result *r) {
  fa_case_free(&r->c);
  if (r->last) fa_result_free(r->last);
  free(r->last);
  memset(r, 0, sizeof *r);
}
