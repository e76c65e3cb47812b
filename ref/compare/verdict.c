/* Every element of one output against its want and bound. */
#include "ref/compare/internal.h"
#include "ref/math/rows.h"

#include <stdlib.h>
#include <string.h>

#define LSE_PIECE 64 /* consecutive rows that form one statistics row: their elements are independent */

/* The ten worst points so far, worst first. */
typedef struct mark {
  int64_t position;
  double err, bound, ratio, got, want;
  uint64_t bits;
  bool class_bad;
} mark;

typedef struct scan {
  fa_tensor_id id;
  const fa_problem *p;
  const fa_want *want;
  const fa_tensor *got;
  fa_poison poison;
  double accept; /* 1 + slack */
  double overflow;
  bool statistics;
  fa_where *where; /* created at the first bad element */
  fa_stats stats;
  fa_stats_row row;
  mark worst[FA_WORST_POINTS];
  fa_verdict *out;
} scan;

static bool worse(const mark *a, const mark *b) {
  if (a->class_bad != b->class_bad) return a->class_bad;
  return a->ratio > b->ratio || (a->ratio == b->ratio && a->err > b->err);
}

/* Only points with an error: a perfect tensor has no worst points. Ties stay in order of position. */
static void keep_worst(scan *s, const mark *m) {
  int n = s->out->n_worst;
  if (n == FA_WORST_POINTS && !worse(m, &s->worst[n - 1])) return;
  int at = n < FA_WORST_POINTS ? n : n - 1;
  for (; at > 0 && worse(m, &s->worst[at - 1]); --at) s->worst[at] = s->worst[at - 1];
  s->worst[at] = *m;
  if (n < FA_WORST_POINTS) s->out->n_worst = n + 1;
}

static bool add_bad(scan *s, const mark *m) {
  ++s->out->bad;
  s->out->class_bad += m->class_bad;
  if (m->class_bad || s->got->dtype == FA_U8) {
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(s->got, m->position, index);
    s->out->unwritten += fa_tensor_is_poison(s->got, index, s->poison);
  }
  if (s->want->span) return true;
  if (s->where == NULL) s->where = fa_where_new(s->id, s->p, s->want);
  if (s->where == NULL) return false;
  fa_where_add(s->where, m->position);
  return true;
}

/* Keep masks and untouched cache slots are exact and have no bounds. */
static double bound_of(const fa_want *w, int64_t e) {
  return w->quant == NULL ? 0 : fa_want_bound(w, e);
}

/* Infinity where a finite value was expected is right if the value before its last rounding may lie where the
 * type rounds to infinity of that sign. */
static bool overflow_is_legitimate(const fa_want *w, fa_class got, int64_t e, double accept,
                                   double overflow) {
  if (got == FA_CLASS_NAN || w->quant == NULL) return false;
  const double toward = got == FA_CLASS_POS_INF ? w->value[e] : -w->value[e];
  const double before_rounding = ((double)w->quant[e] + w->accum[e]) * accept;
  return toward > 0 && toward + before_rounding >= overflow;
}

fa_fit fa_compare_fit(const fa_want *w, int64_t e, fa_dtype dtype, uint64_t bits, double accept,
                      double overflow, double *bound) {
  const fa_class want = fa_class_of_f64(w->value[e]), got = fa_class_of_bits(dtype, bits);
  if (want == FA_CLASS_NAN) return FA_FIT_UNCOMPARED;
  if (w->accum && isinf(w->accum[e])) return FA_FIT_SAME; /* the kernel may overflow on the way */
  *bound = bound_of(w, e);
  if (want == FA_CLASS_FINITE && got == FA_CLASS_FINITE) return FA_FIT_NUMBERS;
  if (want == got) return FA_FIT_SAME;
  if (want == FA_CLASS_FINITE && overflow_is_legitimate(w, got, e, accept, overflow)) return FA_FIT_SAME;
  return FA_FIT_CLASS;
}

/* Of the debug matrix, whose sign is right. A wrong one is compared to the nearest that may be. */
static bool check_magnitude(const scan *s, mark *m) {
  const double x = fabs(fa_load(s->got->dtype, &m->bits)), sign = m->want > 0 ? 1 : -1;
  const double least = s->want->least[m->position], most = s->want->most[m->position];
  if (x >= least && x <= most) return true;
  m->got = sign * x;
  m->want = sign * (x < least ? least : most);
  m->err = fabs(m->got - m->want);
  m->ratio = x < least ? least / x : x / most;
  return false;
}

/* Judges one element that is to be compared. */
static bool judge(scan *s, mark *m) {
  const double want = m->want;
  const fa_fit fit =
      fa_compare_fit(s->want, m->position, s->got->dtype, m->bits, s->accept, s->overflow, &m->bound);
  if (fit == FA_FIT_UNCOMPARED) return true;
  ++s->out->count;
  if (fit == FA_FIT_SAME) return true;
  if (fit == FA_FIT_CLASS) {
    m->class_bad = true;
    m->err = m->ratio = INFINITY;
    keep_worst(s, m);
    return add_bad(s, m);
  }
  m->err = fabs(m->got - want);
  if (s->statistics && m->bound > 0)
    fa_stats_add(&s->row, m->got - want, fa_half_ulp(s->want->dtype, want), s->want->noise[m->position],
                 s->want->quant[m->position], s->want->accum[m->position]);
  const bool ok = m->err <= m->bound * s->accept;
  if (ok && s->want->least && !check_magnitude(s, m)) {
    keep_worst(s, m);
    return add_bad(s, m);
  }
  if (ok && m->err == 0) return true;
  m->ratio = m->bound > 0 ? m->err / m->bound : INFINITY;
  keep_worst(s, m);
  return ok || add_bad(s, m);
}

/* Rows of a float type of 8 to 32 bits with bounds take the fast path. */
bool fa_compare_row(const fa_want *w, int64_t e, fa_row_check *out) {
  const fa_dtype t = w->dtype;
  if (w->quant == NULL || (t != FA_F16 && t != FA_BF16 && t != FA_F32 && !fa_dtype_is_float8(t)))
    return false;
  *out = (fa_row_check){
      .want = w->value + e, .quant = w->quant + e, .accum = w->accum + e, .ulp = fa_want_ulp(t)};
  return true;
}

/* Checks the row at element e (or a piece of it) at once. False: some element must be looked at alone;
 * nothing of the row was counted. */
static bool check_row(scan *s, int64_t e, int64_t width, const double *value) {
  const fa_want *w = s->want;
  const int n = s->out->n_worst;
  fa_row_check r;
  if (!fa_compare_row(w, e, &r)) return false;
  r.got = value;
  r.noise = s->statistics ? w->noise + e : NULL;
  r.accept = s->accept;
  fa_rows_best()->check(&r, width);
  const bool may_enter = n < FA_WORST_POINTS ? r.worst_ratio > 0 : r.worst_ratio >= s->worst[n - 1].ratio;
  if (r.n_odd > 0 || may_enter) return false;
  s->out->count += width;
  s->row = (fa_stats_row){.n = r.n,
                          .n_diffuse = r.n_diffuse,
                          .sum = r.sum,
                          .sum_squares = r.sum_squares,
                          .diffuse_squares = r.diffuse_squares};
  return true;
}

static uint64_t print_of(const fa_want *w, int64_t e, int64_t n, const double *value) {
  uint64_t print = 0;
  for (int64_t c = 0; c < n; ++c) {
    const bool compared = isfinite(w->value[e + c]) && isfinite(value[c]) && !isinf(w->accum[e + c]);
    if (compared) print ^= fa_element_print(value[c], w->value[e + c], c);
  }
  return print;
}

/* The row at element e, or a piece of it. False: out of memory. */
static bool scan_row(scan *s, int64_t e, int64_t n, const uint64_t *bits, const double *value) {
  bool ok = true;
  s->row = (fa_stats_row){0};
  if (!check_row(s, e, n, value))
    for (int64_t c = 0; ok && c < n; ++c) {
      mark m = {.position = e + c, .got = value[c], .want = s->want->value[e + c], .bits = bits[c]};
      ok = judge(s, &m);
    }
  if (s->row.n > 0 && fa_tensor_describe(s->id)->axes != FA_AXES_ROWS)
    s->row.print = print_of(s->want, e, n, value);
  fa_stats_add_row(&s->stats, &s->row);
  return ok;
}

/* False: out of memory. */
static bool scan_rows(scan *s) {
  const fa_want *w = s->want;
  const int64_t width = w->shape[w->rank - 1],
                piece = fa_tensor_describe(s->id)->axes == FA_AXES_ROWS ? LSE_PIECE : width;
  uint64_t *bits = malloc((size_t)width * sizeof *bits);
  double *value = malloc((size_t)width * sizeof *value);
  bool ok = bits != NULL && value != NULL;
  for (int64_t at = 0; ok && at < fa_want_spans(w); ++at) {
    const fa_want_span span = fa_want_span_at(w, at);
    int64_t index[FA_MAX_RANK];
    fa_tensor_unravel(s->got, span.first, index);
    fa_compare_load_row(s->id, s->got, s->got->data + fa_tensor_offset(s->got, index), span.n, bits, value);
    for (int64_t c = 0; ok && c < span.n; c += piece)
      ok = scan_row(s, span.first + c, span.n - c < piece ? span.n - c : piece, bits + c, value + c);
  }
  free(bits);
  free(value);
  return ok;
}

static void report_worst(scan *s) {
  fa_verdict *v = s->out;
  for (int k = 0; k < v->n_worst; ++k) {
    const mark *m = &s->worst[k];
    fa_point *point = &v->worst[k];
    *point = (fa_point){.got_bits = m->bits,
                        .got = m->got,
                        .want = m->want,
                        .err = m->err,
                        .bound = m->bound,
                        .ratio = m->ratio,
                        .class_bad = m->class_bad};
    fa_tensor_unravel(s->got, m->position, point->index);
    point->poison = fa_tensor_is_poison(s->got, point->index, s->poison);
    if (s->want->quant == NULL) continue;
    point->quant = s->want->quant[m->position];
    point->accum = s->want->accum[m->position];
    point->half_ulp = m->bound - point->quant - point->accum;
  }
  if (v->n_worst > 0) v->worst_ratio = v->worst[0].ratio;
}

static fa_status check_shapes(fa_tensor_id id, const fa_want *want, const fa_tensor *got, fa_error *err) {
  const char *name = fa_tensor_id_name(id);
  if (got->data == NULL) return fa_fail(err, FA_ERR_INPUT, "%s: the output is missing", name);
  bool same = got->rank == want->rank;
  for (int a = 0; same && a < want->rank; ++a) same = got->shape[a] == want->shape[a];
  if (!same) return fa_fail(err, FA_ERR_INPUT, "%s: the output's shape is not the expected one", name);
  /* Without bounds, only exact outputs can be judged. */
  FA_ASSERT(want->quant != NULL || id == FA_T_P_DEBUG || id == FA_T_DROPOUT_KEEP);
  return FA_OK;
}

static fa_status no_memory(fa_tensor_id id, fa_error *err) {
  return fa_fail(err, FA_ERR_MEMORY, "%s: out of memory while comparing", fa_tensor_id_name(id));
}

fa_status fa_compare_tensor(fa_tensor_id id, const fa_problem *p, const fa_tensors *in, const fa_want *want,
                            const fa_tensor *got, const fa_compare_options *opt, fa_verdict *out,
                            fa_error *err) {
  *out = (fa_verdict){.id = id, .rank = want->rank, .dtype = want->dtype};
  if (want->n == 0) return FA_OK;
  fa_status status = check_shapes(id, want, got, err);
  if (status != FA_OK) return status;
  scan s = {.id = id,
            .p = p,
            .want = want,
            .got = got,
            .poison = opt->poison,
            .accept = 1 + (opt->slack > 0 ? opt->slack : FA_DEFAULT_SLACK),
            .overflow = fa_overflow_threshold(want, got->dtype),
            .statistics = want->noise != NULL && fa_tensor_id_is_output(id), /* caches: copies */
            .out = out};
  if (!scan_rows(&s)) {
    status = no_memory(id, err);
    goto out;
  }
  out->judged = true;
  report_worst(&s);
  /* Places of a sample are too few to say what the bad ones have in common. */
  if (out->bad > 0 && !want->span) fa_where_describe(s.where, out);
  fa_stats_judge(&s.stats, p, opt, out);
  if (want->scale != NULL) {
    out->tightness = fa_tightness(want);
    if (!fa_vacuous_judge(p, in, want, opt, out)) status = no_memory(id, err);
  }
  out->fail = out->bad > 0 || (out->stat_bad && opt->judge_stats);
out:
  fa_where_free(s.where);
  return status;
}
