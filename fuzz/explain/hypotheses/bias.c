/* The bias and its gradient. */
#include "fuzz/explain/hypothesis.h"

#include <string.h>

static bool bias_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.bias.present = false;
  m->in.t[FA_T_BIAS].data = NULL;
  fa_mistake_say(m, "bias missing");
  return x->p->bias.present;
}

static bool bias_transposed(const fa_failure *x, int v, fa_mistake *m) {
  fa_tensor *t = &m->in.t[FA_T_BIAS];
  const int64_t step = t->stride[2];
  (void)v;
  if (!x->p->bias.present || t->shape[2] != t->shape[3] || t->shape[2] == 1) return false;
  t->stride[2] = t->stride[3];
  t->stride[3] = step;
  fa_mistake_say(m, "bias transposed");
  return true;
}

/* Takes what is at place from[i] of an axis to place i. */
static bool permute(const fa_failure *x, int axis, const int64_t *from, fa_mistake *m) {
  const fa_tensor right = x->in->t[FA_T_BIAS];
  fa_tensor *t = &m->in.t[FA_T_BIAS];
  if (!fa_mistake_copy_input(m, FA_T_BIAS)) return false;
  for (int64_t i = 0; i < right.shape[axis]; ++i) {
    fa_tensor to = *t, source = right;
    to.shape[axis] = source.shape[axis] = 1;
    to.data += i * t->stride[axis] * (int64_t)fa_dtype_size(t->dtype);
    source.data += from[i] * right.stride[axis] * (int64_t)fa_dtype_size(t->dtype);
    fa_tensor_copy(&to, &source);
  }
  return true;
}

static bool bias_of_other(const fa_failure *x, int axis, int v, const char *const *what, fa_mistake *m) {
  const int64_t n = x->in->t[FA_T_BIAS].shape[axis];
  if (!x->p->bias.present || n == 1 || (v == 3 && (axis == 0 || x->place.group == 1)) || (n == 2 && v == 1))
    return false;
  int64_t *from = fa_mistake_alloc(m, (size_t)n * sizeof *from);
  for (int64_t i = 0; from && i < n; ++i) {
    const int64_t of[] = {(i + 1) % n, (i + n - 1) % n, 0, i / x->place.group};
    from[i] = of[v];
  }
  fa_mistake_say(m, "bias of %s", what[v]);
  return from && permute(x, axis, from, m);
}

static bool bias_of_other_head(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"the head after", "the head before", "the first head",
                                     "the key/value head"};
  return bias_of_other(x, 1, v, what, m);
}

static bool bias_of_other_batch(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"the sequence after", "the sequence before", "the first sequence"};
  return bias_of_other(x, 0, v, what, m);
}

/* A copy in double, so that no rounding comes in. */
static bool multiply(const fa_failure *x, double by, fa_mistake *m) {
  const fa_tensor right = x->in->t[FA_T_BIAS];
  fa_tensor *t = &m->in.t[FA_T_BIAS];
  const int64_t n = fa_tensor_count(&right);
  double *value = x->p->bias.present ? fa_mistake_alloc(m, (size_t)n * sizeof *value) : NULL;
  int64_t index[FA_MAX_RANK];
  if (!value) return false;
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(&right, e, index);
    value[e] = by * fa_tensor_get(&right, index);
  }
  t->dtype = FA_F64;
  t->data = (char *)value;
  for (int64_t a = t->rank - 1, step = 1; a >= 0; step *= t->shape[a--]) t->stride[a] = step;
  return true;
}

static bool bias_not_scaled(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const texts[] = {"bias added before the scale", "bias not multiplied by log2(e)",
                                      "bias multiplied by log2(e)", "bias divided by the scale"};
  const double by[] = {x->p->scale, 1 / LOG2_E, LOG2_E, 1 / x->p->scale};
  if (!x->p->bias.present || by[v] == 1) return false;
  fa_mistake_say(m, "%s", texts[v]);
  return multiply(x, by[v], m);
}

/* number: an axis along which the bias is broadcast, and the place that alone counts. The gradient was computed with this
 * axis: takes the part of that place. */
static void take_part(const fa_mistake *m, const fa_failure *x, fa_wants *wants) {
  fa_want *w = &wants->t[FA_T_DBIAS];
  const int64_t axis = m->number[0], place = m->number[1];
  int64_t inner = 1, outer = 1;
  (void)x;
  if (!w->value) return;
  for (int a = 0; a < w->rank; ++a) {
    if (a < axis) outer *= w->shape[a];
    if (a > axis) inner *= w->shape[a];
  }
  for (int64_t o = 0; o < outer; ++o) {
    const int64_t from = (o * w->shape[axis] + place) * inner, to = o * inner;
    memmove(w->value + to, w->value + from, (size_t)inner * sizeof *w->value);
    memmove(w->quant + to, w->quant + from, (size_t)inner * sizeof *w->quant);
    memmove(w->accum + to, w->accum + from, (size_t)inner * sizeof *w->accum);
  }
  w->shape[axis] = 1;
  w->n = outer * inner;
}

static bool dbias_not_summed(const fa_failure *x, int v, fa_mistake *m) {
  static const char *const what[] = {"sequences", "heads", "rows"};
  const int axis = v / 2;
  const int64_t n[] = {x->p->batch, x->p->heads_q, x->p->seqlen_q};
  fa_tensor *t = &m->in.t[FA_T_BIAS];
  if (!x->p->bias.present || !x->p->bias.grad || t->shape[axis] != 1 || n[axis] == 1) return false;
  t->shape[axis] = n[axis];
  t->stride[axis] = 0;
  *(axis == 0 ? &m->p.bias.per_batch : axis == 1 ? &m->p.bias.per_head : &m->p.bias.per_query) = true;
  m->number[0] = axis;
  m->number[1] = v % 2 ? n[axis] - 1 : 0;
  m->after = take_part;
  fa_mistake_say(m, "dBias not summed over %s: the %s one counts", what[axis], v % 2 ? "last" : "first");
  return true;
}

#define NOT_DBIAS (FA_OF_ALL & ~FA_BIT(FA_T_DBIAS))
const fa_hypothesis fa_hypotheses_of_bias[] = {
    {"bias_missing", "the bias is not added", NOT_DBIAS, 1, bias_missing},
    {"bias_transposed", "the bias is transposed", FA_OF_ALL, 1, bias_transposed},
    {"bias_of_other_head", "the bias is that of another head", FA_OF_ALL, 4, bias_of_other_head},
    {"bias_of_other_batch", "the bias is that of another sequence", FA_OF_ALL, 3, bias_of_other_batch},
    {"bias_not_scaled", "the bias is added in other units than the scores", FA_OF_ALL, 4, bias_not_scaled},
    {"dbias_not_summed", "a broadcast bias's gradient is that of one place only", FA_BIT(FA_T_DBIAS), 6,
     dbias_not_summed},
    {.name = NULL}};
