/* A turn of many problems: how much longer each further one takes is what it costs, whatever a request itself does. */
#include "cases/data/build.h"
#include "fuzz/timing/course.h"
#include "report/text/progress.h"

#include <string.h>

enum { FIRST_MOST = 4 };
#define TURN_SECONDS 0.04 /* that the problems of a request take together, if there may be so many */
#define OUTPUT_BYTES 4e9  /* that the child keeps of a request */

/* ---- places ---- */

static double input_bytes(const fa_tensors *t) {
  double bytes = 0;
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_time_moves(t, (fa_tensor_id)id))
      bytes += (double)fa_tensor_count(&t->t[id]) * (double)fa_dtype_size(t->t[id].dtype);
  return bytes;
}

/* Draws new data for a place. */
static fa_status build(fa_course *x, int place, fa_error *err) {
  fa_tensors new;
  x->drawn.data_seed = fa_link_seed(&x->link);
  const fa_status status = fa_case_build_on(&x->drawn, x->n_threads, &new, err);
  if (status != FA_OK) return status;
  fa_tensors_free(&x->pool.place[place]);
  x->pool.place[place] = new;
  ++x->pool.version[place];
  return FA_OK;
}

static fa_status stage(fa_course *x, int place, fa_error *err) {
  fa_time_fault fault = "";
  const fa_status status = fa_time_stage(x->who->exec, &x->c->problem, &x->pool.place[place], x->passes,
                                         place, x->n_places, fault, err);
  if (status == FA_OK && fault[0]) fa_course_fault(x, "crash", "when it was handed inputs: %s", fault);
  return status;
}

fa_status fa_batch_start(fa_course *x, fa_error *err) {
  const double wanted = fa_defence_in(x->defences, FA_DEFENCE_POOL) ? x->pool_wanted : 0;
  fa_status status = build(x, 0, err);
  if (status != FA_OK) return status;
  x->pool.n = 1;
  x->place_bytes = (size_t)input_bytes(&x->pool.place[0]);
  x->n_places = fa_pool_places(wanted, (double)x->place_bytes);
  x->most = FIRST_MOST;
  for (int i = 0; status == FA_OK && !x->why[0] && i < x->n_places; ++i) {
    if (i > 0) status = build(x, i, err);
    if (status != FA_OK) break;
    x->pool.n = i + 1;
    status = stage(x, i, err);
  }
  return status;
}

/* ---- answers ---- */

/* Fetches output i of the last request and looks at it. */
static fa_status look_at(fa_course *x, const fa_time_problem *problem, const fa_time_answer *answer, int i,
                         fa_turn turn, fa_error *err) {
  fa_time_fault fault = "";
  fa_tensors got, in;
  const double since = fa_seconds_now(); /* fetching a large output takes longer than judging a part of it */
  fa_status status = fa_tensors_clone_poisoned(&got, &x->pool.place[0], FA_POISON_A, err);
  if (status != FA_OK) return status;
  status = fa_time_fetch(x->who->exec, &x->c->problem, &got, x->passes, i, fault, err);
  fa_pool_inputs(&x->pool, &problem[i], &in);
  if (status == FA_OK && fault[0])
    fa_course_fault(x, "crash", "when an output was fetched: %s", fault);
  else if (status == FA_OK && fa_defence_in(x->defences, FA_DEFENCE_CLAIM) &&
           fa_time_sum(&got, x->passes) != answer->sum[i])
    fa_course_fault(
        x, "claim",
        "problem %d: the output that it delivered is not the one that it had summed when it answered", i);
  else if (status == FA_OK)
    status = fa_course_judge(x, &in, &got, problem[i].scale, turn, since, err);
  fa_tensors_free(&got);
  return status;
}

/* One request of n problems, and a look at some of the outputs. */
static fa_status request(fa_course *x, int n, fa_turn turn, bool last, fa_time_answer *answer,
                         fa_error *err) {
  fa_time_problem problem[FA_MOST_PROBLEMS] = {{.scale = 0}};
  fa_time_fault fault = "";
  const bool same = !fa_defence_in(x->defences, FA_DEFENCE_CHAIN);
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < n; ++i)
    status = fa_pool_draw(&x->pool, x->c->problem.scale, same, &problem[i], err);
  if (status == FA_OK)
    status = fa_time_ask(x->who->exec, &x->c->problem, &x->pool.place[0], x->passes, x->n_threads, problem, n,
                         answer, fault, err);
  if (n > 1 && turn != FA_TURN_WARM) fa_course_watch(x);
  if (status == FA_OK && fault[0]) fa_course_fault(x, "crash", "%s", fault);
  if (status != FA_OK || x->why[0]) return status;
  fa_link_take_words(&x->link, answer->sum, n);
  x->n_outputs += n;
  if (turn != FA_TURN_WARM) x->n_timed += n;
  for (int i = 0; status == FA_OK && !x->why[0] && i < n; ++i)
    if (fa_course_draws(x, last && i == n - 1 ? FA_TURN_LAST : turn == FA_TURN_LAST ? FA_TURN_TIMED : turn))
      status = look_at(x, problem, answer, i, turn, err);
  return status;
}

/* ---- a turn ---- */

static double output_bytes(const fa_course *x) {
  const fa_tensor *o = &x->pool.place[0].t[FA_T_O];
  return (double)fa_tensor_count(o) * (double)fa_dtype_size(o->dtype) *
         (x->passes & FA_PASS_BACKWARD ? 4 : 1);
}

/* As many as take TURN_SECONDS: from the first warm-ups on. */
static void choose_most(fa_course *x, double wall) {
  double most = wall > 0 ? TURN_SECONDS / wall : FA_MOST_PROBLEMS;
  if (most * output_bytes(x) > OUTPUT_BYTES) most = OUTPUT_BYTES / output_bytes(x);
  x->most = most < FIRST_MOST ? FIRST_MOST : most > FA_MOST_PROBLEMS ? FA_MOST_PROBLEMS : (int)most;
}

fa_status fa_batch_turn(fa_course *x, fa_turn turn, double *wall, double *claim, fa_error *err) {
  fa_time_answer one, many;
  const int n = x->most / 2 + 1 + (int)fa_secret_below(x->most - x->most / 2);
  const bool one_first = fa_secret_below(2);
  fa_status status = FA_OK;
  memset(&one, 0, sizeof one), memset(&many, 0, sizeof many);
  if (fa_defence_in(x->defences, FA_DEFENCE_CHAIN) && x->who->role != FA_ROLE_NOTHING) {
    status = build(x, x->pool.next, err);
    if (status == FA_OK) status = stage(x, x->pool.next, err);
    x->pool.next = (x->pool.next + 1) % x->pool.n;
  }
  for (int i = 0; status == FA_OK && !x->why[0] && i < 2; ++i) {
    const bool is_one = one_first == (i == 0), last = turn == FA_TURN_LAST && i == 1;
    status = request(x, is_one ? 1 : n, turn, last, is_one ? &one : &many, err);
  }
  *wall = (many.wall - one.wall) / (n - 1);
  if (turn != FA_TURN_WARM && !x->why[0] && (x->n == 0 || many.wall / n < x->least)) x->least = many.wall / n;
  *claim = many.claim < 0 ? -1 : many.claim / n;
  if (turn == FA_TURN_WARM) choose_most(x, *wall);
  return status;
}
