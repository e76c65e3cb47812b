#include "fuzz/explain/failure.h"

#include "cases/threads/processors.h"
#include "report/text/progress.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#define SLACK 0x1p-6 /* as ref/compare has it */
#define MOST_LOADED 10.0

static double busy_now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double largest_of(fa_dtype t) {
  return t == FA_F16 ? 65504.0 : t == FA_BF16 ? 0x1.fep127 : 0x1.fffffep127;
}

/* Infinity is right where the value before its rounding may have been beyond the type's largest. */
static bool may_overflow(const fa_want *w, int64_t e, double got) {
  const double toward = got > 0 ? w->value[e] : -w->value[e];
  return isinf(got) && toward > 0 && toward + w->quant[e] + w->accum[e] >= largest_of(w->dtype);
}

bool fa_element_is_within(const fa_want *w, int64_t e, double got) {
  const double want = w->value[e];
  if (isnan(want)) return false;
  if (!w->accum) return got == want;
  if (isinf(w->accum[e])) return true;
  if (isfinite(want) && isfinite(got)) return fabs(got - want) <= fa_want_bound(w, e) * (1 + SLACK);
  return got == want || may_overflow(w, e, got);
}

static fa_status set_tensor(fa_failure *x, fa_tensor_id id, const fa_want *right, fa_error *err) {
  const fa_tensor *got = &x->got->t[id];
  fa_failed *t = &x->tensor[x->n++];
  *t = (fa_failed){.id = id, .right = right, .n = right->n};
  t->width = id == FA_T_LSE ? 1 : right->shape[right->rank - 1];
  t->got = malloc((size_t)t->n * sizeof *t->got);
  t->state = malloc((size_t)t->n);
  if (!t->got || !t->state) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  const int64_t last = right->shape[right->rank - 1];
  int64_t index[FA_MAX_RANK];
  for (int64_t e = 0; e < t->n; e += last) {
    fa_tensor_unravel(got, e, index);
    fa_ref_load_row(got, got->data + fa_tensor_offset(got, index), got->stride[got->rank - 1], last,
                    t->got + e);
  }
  for (int64_t e = 0; e < t->n; ++e) {
    const bool compared = !isnan(right->value[e]);
    const bool good = compared && fa_element_is_within(right, e, t->got[e]);
    t->state[e] = !compared ? FA_ELEMENT_SKIPPED : good ? FA_ELEMENT_RIGHT : FA_ELEMENT_WRONG;
    t->compared += compared;
    t->wrong += compared && !good;
  }
  x->set |= FA_TENSOR_BIT(id);
  return FA_OK;
}

static const fa_want *want_of(const fa_judged *j, fa_tensor_id id) {
  const fa_want *w = &j->forward.t[id];
  return w->value ? w : &j->gradients.t[id];
}

fa_status fa_failure_init(fa_failure *x, double seconds, const fa_problem *p, const fa_tensors *in,
                          const fa_tensors *got, const fa_judge_config *config, const fa_judged *judged,
                          const fa_result *r, fa_error *err) {
  const fa_ref_options options = {.n_threads = 1};
  fa_wants none;
  *x = (fa_failure){
      .p = p, .in = in, .got = got, .config = config, .judged = judged, .result = r, .seconds = seconds};
  x->began = fa_seconds_now();
  x->began_here = busy_now(CLOCK_THREAD_CPUTIME_ID);
  x->began_work = busy_now(CLOCK_PROCESS_CPUTIME_ID);
  fa_status status = fa_ref_call_init(&x->place, p, in, &options, &none, err);
  for (int i = 0; status == FA_OK && i < r->n_verdicts; ++i) {
    const fa_verdict *v = &r->verdict[i];
    const fa_want *right = want_of(judged, v->id);
    const bool is_known = right->accum && got->t[v->id].data && !(x->set >> v->id & 1);
    if (v->fail && is_known) status = set_tensor(x, v->id, right, err);
  }
  return status;
}

void fa_failure_free(fa_failure *x) {
  for (int i = 0; i < x->n; ++i) {
    free(x->tensor[i].got);
    free(x->tensor[i].state);
  }
  fa_ref_call_free(&x->place);
  *x = (fa_failure){0};
}

const fa_failed *fa_failure_find(const fa_failure *x, fa_tensor_id id) {
  for (int i = 0; i < x->n; ++i)
    if (x->tensor[i].id == id) return &x->tensor[i];
  return NULL;
}

/* Small computations are done by this thread, large ones by as many as the reference has. */
double fa_failure_left(const fa_failure *x) {
  const int threads = x->config->n_threads > 0 ? x->config->n_threads : fa_processors();
  const double here = busy_now(CLOCK_THREAD_CPUTIME_ID) - x->began_here;
  const double work = (busy_now(CLOCK_PROCESS_CPUTIME_ID) - x->began_work) / threads;
  const double by_clock = (fa_seconds_now() - x->began) / MOST_LOADED;
  return x->seconds - fmax(fmax(here, work), by_clock);
}

bool fa_failure_in_time(const fa_failure *x) {
  return fa_failure_left(x) > 0;
}
