#include "fuzz/judging/canary.h"
#include "ref/cuda/try.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- chance ---- */

static uint64_t draw(void) {
  uint64_t x = 0;
  getrandom(&x, sizeof x, 0);
  return x;
}

bool fa_canary_is_due(void) {
  enum { EVERY = 256 };
  return draw() % EVERY == 0;
}

/* ---- one wrong element ---- */

static bool can_be_wrong(const fa_want *w, int64_t e) {
  return isfinite(w->value[e]) && isfinite(fa_want_bound(w, e));
}

/* The type rounds to nearest, perhaps back inside. Where nothing but 0 is right, the smallest number of f16 is far enough. */
static void put_beyond(const fa_tensor *t, const int64_t *index, const fa_want *w, int64_t e) {
  const double want = w->value[e], away = fa_want_bound(w, e) * 1.1, side = draw() % 2 ? 1 : -1;
  const double least = away > 0 ? away : 0x1p-24;
  double off = least;
  do {
    fa_tensor_set(t, index, want + side * off);
    off *= 1.01;
  } while (fabs(fa_tensor_get(t, index) - want) < least);
}

/* The records name the element if it is the only one that is not surely right. */
static bool is_named(const fa_judge_trial *t, fa_tensor_id id, const fa_tensor *changed,
                     const int64_t *index) {
  bool named = false;
  if (t->passed) return false;
  for (int i = 0; i < t->n; ++i) {
    const fa_verdict *v = &t->verdict[i];
    if (v->id != id && v->bad != 0) return false;
    if (v->id != id) continue;
    named = v->bad == 1 && v->n_worst > 0;
    for (int a = 0; named && a < changed->rank; ++a) named = v->worst[0].index[a] == index[a];
  }
  return named;
}

static fa_status say_missed(fa_tensor_id id, const fa_tensor *t, const int64_t *index, bool nan,
                            fa_error *err) {
  char at[100] = "";
  for (int a = 0; a < t->rank; ++a)
    snprintf(at + strlen(at), sizeof at - strlen(at), "%s%lld", a ? "," : "", (long long)index[a]);
  return fa_fail(
      err, FA_ERR_DEVICE,
      "a canary lives: the judge on the GPU does not name %s[%s], which was made %s for it to find",
      fa_tensor_id_name(id), at, nan ? "NaN" : "wrong");
}

static bool is_gradient(fa_tensor_id id) {
  return id != FA_T_O && id != FA_T_LSE;
}

static fa_status judge_changed(const fa_canary_call *c, fa_tensor_id id, const fa_tensors *got,
                               const int64_t *index, bool nan, fa_error *err) {
  fa_judge_trial *t = malloc(sizeof *t);
  if (!t) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  *t = (fa_judge_trial){.passed = true};
  fa_status status = fa_judge_try(c->machine, c->p, c->in, got, c->options, c->as, is_gradient(id), t, err);
  if (status == FA_OK && !is_named(t, id, &got->t[id], index))
    status = say_missed(id, &got->t[id], index, nan, err);
  free(t);
  return status;
}

static bool copy_dense(const fa_tensor *from, fa_tensor *to) {
  int64_t stride = 1;
  *to = *from;
  for (int a = from->rank - 1; a >= 0; --a) {
    to->stride[a] = stride;
    stride *= from->shape[a];
  }
  to->data = malloc((size_t)stride * fa_dtype_size(from->dtype));
  if (to->data) fa_tensor_copy(to, from);
  return to->data != NULL;
}

fa_status fa_canary_try_at(const fa_canary_call *c, fa_tensor_id id, const fa_want *w, int64_t element,
                           bool nan, fa_error *err) {
  fa_tensors *got = malloc(sizeof *got);
  int64_t index[FA_MAX_RANK] = {0};
  fa_status status = FA_ERR_MEMORY;
  if (got) *got = *c->got;
  if (got) got->t[FA_T_AMAX_P].data = got->t[FA_T_AMAX_O].data = NULL; /* wrong beside another O */
  if (got && copy_dense(&c->got->t[id], &got->t[id])) {
    const fa_tensor *t = &got->t[id];
    fa_tensor_unravel(t, element, index);
    if (nan)
      fa_tensor_set(t, index, NAN);
    else
      put_beyond(t, index, w, element);
    status = judge_changed(c, id, got, index, nan, err);
    free(t->data);
  } else {
    fa_fail(err, FA_ERR_MEMORY, "out of memory");
  }
  free(got);
  return status;
}

/* ---- any element ---- */

/* -1: there is none that can be wrong, or none is found. */
static int64_t draw_element(const fa_want *w) {
  enum { TRIES = 64 };
  for (int i = 0; w->n > 0 && i < TRIES; ++i) {
    const int64_t e = (int64_t)(draw() % (uint64_t)w->n);
    if (can_be_wrong(w, e)) return e;
  }
  return -1;
}

static fa_status try_some_output(const fa_canary_call *c, bool backward, const fa_wants *w, fa_error *err) {
  static const fa_tensor_id forward[] = {FA_T_O, FA_T_LSE},
                            gradients[] = {FA_T_DQ, FA_T_DK, FA_T_DV, FA_T_DBIAS, FA_T_DSINKS};
  const int n = backward ? 5 : 2, first = (int)(draw() % (uint64_t)n);
  for (int i = 0; i < n; ++i) {
    const fa_tensor_id id = (backward ? gradients : forward)[(first + i) % n];
    const int64_t e = c->got->t[id].data ? draw_element(&w->t[id]) : -1;
    if (e >= 0) return fa_canary_try_at(c, id, &w->t[id], e, draw() % 8 == 0, err);
  }
  return FA_OK;
}

/* All that is wanted has to come from the machine: of a large call, minutes. */
#define MOST_ELEMENTS ((int64_t)1 << 24)

fa_status fa_canary_try(const fa_canary_call *c, fa_error *err) {
  const fa_tensor *o = &c->got->t[FA_T_O], *lse = &c->got->t[FA_T_LSE];
  const bool backward = c->backward && draw() % 2;
  fa_wants w;
  if (fa_tensor_count(&c->got->t[backward ? FA_T_DK : FA_T_O]) > MOST_ELEMENTS) return FA_OK;
  fa_status status = backward ? fa_judge_backward(c->machine, c->p, c->in, o, lse, c->options, &w, err)
                              : fa_judge_forward(c->machine, c->p, c->in, c->options, &w, err);
  if (status != FA_OK) return status;
  status = try_some_output(c, backward, &w, err);
  fa_wants_free(&w);
  return status;
}
