#include "fuzz/explain/accept.h"

#include <math.h>

#define LEAST_SHARE 0.95
#define LEAST_SHARE_IN_PART 0.99
#define LEAST_WRONG_IN_PART 32
#define MOST_WIDER 4.0         /* the mistake's bounds, than the right ones */
#define MOST_OF_DISTANCE 0.125 /* or else of the distance from the right values */
#define MOST_AWAY 0.5          /* the distance from the mistake's values, of that from the right ones */
#define MOST_AWAY_ROUNDED 0.8  /* the same, of a rounding */
#define LEAST_ROUNDED 256      /* elements */
#define LEAST_ROUNDED_ROWS 8   /* of so many rows at least */
#define LEAST_ROUNDED_FEW 64   /* or so many, if they are as near as another mistake's */

typedef struct taking {
  const fa_failure *x;
  const fa_mistake *m;
  const fa_want *w; /* the mistake's */
  const fa_failed *t;
  fa_tally *out;
  bool row_wrong; /* of the row so far */
  int64_t row_broken;
} taking;

static void take_zero(const taking *k, int64_t e, bool *within, double *value, double *bound) {
  *value = *bound = 0;
  *within = k->t->got[e] == 0;
}

/* The right element that this one is, if it lies elsewhere; itself where there is none such. */
static void take_moved(const taking *k, int64_t e, bool *within, double *value, double *bound) {
  fa_place at;
  int64_t from = -1;
  if (fa_place_of(k->x, k->t, e, &at) && k->m->moved(k->m, k->x, k->t, &at))
    from = fa_element_at(k->x, k->t, &at);
  if (from < 0) from = e;
  *within = fa_element_is_within(k->t->right, from, k->t->got[e]);
  *value = k->t->right->value[from];
  *bound = fa_want_bound(k->t->right, from);
}

static void take_wanted(const taking *k, int64_t e, bool *within, double *value, double *bound) {
  *within = fa_element_is_within(k->w, e, k->t->got[e]);
  if (k->m->expects_nan && isnan(k->w->value[e])) *within = !isfinite(k->t->got[e]);
  *value = k->w->value[e];
  *bound = fa_want_bound(k->w, e);
}

/* What a kernel that computes x exactly returns. */
static double returned(const fa_want *w, double x) {
  static const fa_ref_rounding of_type[] = {[FA_F16] = {11, -14, 65504, false},
                                            [FA_BF16] = {8, -126, 0x1.fep127, false},
                                            [FA_F32] = {24, -126, 0x1.fffffep127, false}};
  return w->dtype <= FA_F32 ? fa_ref_round(&of_type[w->dtype], x) : x;
}

/* Of a rounding: the distances of an element, wrong or not. */
static void add_distances(const taking *k, int64_t e, double right, double value) {
  fa_tally *t = k->out;
  const double got = k->t->got[e], from_right = fabs(got - returned(k->t->right, right)),
               from_value = fabs(got - returned(k->t->right, value));
  t->away_right += from_right;
  t->away_mistaken += from_value;
  if (k->t->state[e] != FA_ELEMENT_WRONG) return;
  t->far_right += from_right;
  t->far_mistaken += from_value;
}

static void add_wrong(const taking *k, int64_t e, bool within, double value, double bound) {
  fa_tally *t = k->out;
  const double right = k->t->right->value[e], got = k->t->got[e];
  const int64_t row = e / k->t->width;
  ++t->wrong;
  t->explained += within;
  if (t->rows_wrong < LEAST_ROUNDED_ROWS && (t->rows_wrong == 0 || row != t->last_row)) ++t->rows_wrong;
  t->last_row = row;
  if (!isfinite(got) || !isfinite(right) || !isfinite(value)) return;
  if (k->m->of_precision) {
    add_distances(k, e, right, value);
    return;
  }
  t->away_right += fabs(got - right);
  t->away_mistaken += fabs(got - value);
  t->bound_right += fa_want_bound(k->t->right, e);
  t->bound_mistaken += bound;
}

/* A row has ended: what was contradicted in it counts if it has wrong elements too. */
static void end_row(taking *k) {
  if (k->row_wrong) k->out->broken_beside += k->row_broken;
  k->row_wrong = false;
  k->row_broken = 0;
}

static void take(void *context, int64_t first, int64_t n) {
  taking *k = context;
  for (int64_t e = first; e < first + n; ++e) {
    bool within;
    double value, bound;
    if (e % k->t->width == 0) end_row(k);
    if (k->t->state[e] == FA_ELEMENT_SKIPPED) continue;
    if (k->m->moved)
      take_moved(k, e, &within, &value, &bound);
    else if (k->m->zero)
      take_zero(k, e, &within, &value, &bound);
    else
      take_wanted(k, e, &within, &value, &bound);
    ++k->out->compared;
    if (k->m->of_precision || k->t->state[e] == FA_ELEMENT_WRONG) {
      add_wrong(k, e, within, value, bound);
      k->row_wrong = true;
    } else {
      k->out->broken += !within;
      k->row_broken += !within;
    }
  }
}

void fa_tally_take(const fa_failure *x, const fa_mistake *m, const fa_wants *wants, const fa_failed *t,
                   const fa_scope *scope, fa_tally *out) {
  taking k = {.x = x, .m = m, .w = &wants->t[t->id], .t = t, .out = out};
  *out = (fa_tally){0};
  if (!m->moved && !m->zero && (!k.w->value || k.w->n != t->n)) return;
  fa_scope_each(x, scope, t, take, &k);
  end_row(&k);
}

/* Bounds that nearly anything would be within explain nothing. */
static bool is_tight(const fa_tally *t) {
  return t->bound_mistaken <= MOST_WIDER * t->bound_right ||
         t->bound_mistaken <= MOST_OF_DISTANCE * t->away_right;
}

fa_accepted fa_tally_accept(const fa_tally *t) {
  const double explained = (double)t->explained, wrong = (double)t->wrong;
  if (t->wrong == 0 || explained < LEAST_SHARE * wrong || !is_tight(t)) return FA_NOT_EXPLAINED;
  if (t->away_mistaken > MOST_AWAY * t->away_right) return FA_NOT_EXPLAINED;
  if ((double)t->broken <= (1 - LEAST_SHARE) * wrong) return FA_EXPLAINED;
  const bool in_part = t->wrong >= LEAST_WRONG_IN_PART && t->rows_wrong >= 2 &&
                       explained >= LEAST_SHARE_IN_PART * wrong &&
                       (double)t->broken_beside <= (1 - LEAST_SHARE) * wrong;
  return in_part ? FA_EXPLAINED_IN_PART : FA_NOT_EXPLAINED;
}

bool fa_tally_is_promising(const fa_tally *t) {
  return t->away_mistaken <= MOST_AWAY_ROUNDED * t->away_right;
}

/* Fewer elements must follow it the closer, and those of few rows, which may all come from one rounded number. */
fa_accepted fa_tally_accept_rounding(const fa_tally *t) {
  const bool many = t->wrong >= LEAST_ROUNDED && t->rows_wrong >= LEAST_ROUNDED_ROWS;
  const double most = many ? MOST_AWAY_ROUNDED : MOST_AWAY;
  if (t->wrong < LEAST_ROUNDED_FEW || (double)t->explained < LEAST_SHARE * (double)t->wrong)
    return FA_NOT_EXPLAINED;
  const bool near = t->away_mistaken < most * t->away_right && t->far_mistaken <= most * t->far_right;
  return near ? FA_EXPLAINED : FA_NOT_EXPLAINED;
}
