/* Derivatives of an expression by reverse accumulation over its tree.
 *
 * A branch that is not taken contributes nothing, whatever its values; it is not multiplied by 0, because 0
 * times infinity would be NaN. If rounding may decide a branch, both are followed and the error covers
 * either. Kinks: docs/reference/expressions.md, "Derivatives". */
#include "ref/mods/lane.h"

#include <float.h>
#include <math.h>
#include <string.h>

static const double u = 0x1p-24, tiny = 0x1p-126, eps_divide = 0x1p-22;

enum { L = FA_EXPR_LANES };

typedef struct fa_local { /* one factor of the chain: its value and error */
  double v, e;
} fa_local;

static double times(double a, double b) {
  return isinf(a) || isinf(b) ? INFINITY : a * b;
}

static fa_local over(double a, double a_error, double b, double b_error) {
  const double v = a / b;
  if (b_error > 0 && !(fabs(b) > b_error)) return (fa_local){isfinite(v) ? v : 0, INFINITY};
  if (b == 0) return (fa_local){v, 0};
  return (fa_local){v, (a_error + times(fabs(v), b_error)) / (fabs(b) - b_error) + eps_divide * fabs(v)};
}

/* A sine or cosine y whose argument's error changes it by at most moved. */
static fa_local wave(const fa_ref_expr *x, double y, double moved) {
  const fa_ref_function_error f = fa_ref_function_error_of(FA_EXPR_COS, x->fast);
  return (fa_local){y, moved + f.eps * fabs(y) + f.floor};
}

static fa_local of_lane(fa_lane a) {
  return (fa_local){a.v, a.e};
}

/* d node / d argument k. */
static fa_local local_of(const fa_ref_expr *x, int node, int k, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const int64_t at = (int64_t)node * L + lane, a = (int64_t)n->arg[0] * L + lane;
  const int64_t b = n->n_args > 1 ? (int64_t)n->arg[1] * L + lane : a;
  const double va = x->value[a], ea = x->error[a], vb = x->value[b], eb = x->error[b];
  const double y = x->value[at], ey = x->error[at];
  switch (n->op) {
  case FA_EXPR_NEG:
    return (fa_local){-1, 0};
  case FA_EXPR_ABS:
    return (fa_local){va > 0 ? 1 : va < 0 ? -1 : 0, ea > 0 && !(fabs(va) > ea) ? 2 : 0};
  case FA_EXPR_EXP:
    return (fa_local){y, ey};
  case FA_EXPR_LOG:
    return over(1, 0, va, ea);
  case FA_EXPR_SQRT:
    return over(0.5, 0, y, ea == 0 && va == 0 ? 0 : ey);
  case FA_EXPR_TANH:
    return (fa_local){(1 - fabs(y)) * (1 + fabs(y)), 2 * fabs(y) * ey + ey * ey + 2 * u};
  case FA_EXPR_SIN:
    return wave(x, cos(va), times(ea, fmin(1, fabs(sin(va)) + ea)));
  case FA_EXPR_COS:
    return wave(x, -sin(va), times(ea, fmin(1, fabs(cos(va)) + ea)));
  case FA_EXPR_ERF:
    return of_lane(fa_lane_erf_slope((fa_lane){va, ea, 0}));
  case FA_EXPR_SIGMOID:
    return of_lane(fa_lane_sigmoid_slope((fa_lane){y, ey, 0}));
  case FA_EXPR_POW:
    if (k == 0) return of_lane(fa_lane_pow_by_base((fa_lane){va, ea, 0}, (fa_lane){vb, eb, 0}));
    return of_lane(
        fa_lane_pow_by_exponent((fa_lane){va, ea, 0}, (fa_lane){vb, eb, 0}, (fa_lane){y, ey, 0}, x->fast));
  case FA_EXPR_MUL:
    return k == 0 ? (fa_local){vb, eb} : (fa_local){va, ea};
  case FA_EXPR_DIV:
    if (k == 0) return over(1, 0, vb, eb);
    const fa_local q = over(y, ey, vb, eb);
    return (fa_local){-q.v, q.e};
  case FA_EXPR_SUB:
    return (fa_local){k == 0 ? 1 : -1, 0};
  default: /* sums, and operations that pass their argument through */
    return (fa_local){1, 0};
  }
}

/* Whether argument k of a node is followed, as reached[] bits, and its factor, plus or minus spread. */
static uint8_t follows(const fa_ref_expr *x, int node, int k, int lane, double *weight, double *spread) {
  const fa_expr_node *n = &x->e->node[node];
  const int64_t a = (int64_t)n->arg[0] * L + lane;
  *weight = 1;
  *spread = 0;
  if (n->op == FA_EXPR_SELECT) {
    const uint8_t unsure = x->error[a] > 0 ? FA_REACHED_UNSURE : 0;
    return ((x->value[a] != 0) == (k == 1) ? FA_REACHED_BY_VALUE : 0) | unsure;
  }
  if (n->op != FA_EXPR_MIN && n->op != FA_EXPR_MAX) return FA_REACHED_BY_VALUE;
  const int64_t b = (int64_t)n->arg[1] * L + lane;
  const double d = x->value[a] - x->value[b], e = x->error[a] + x->error[b];
  const uint8_t unsure = e > 0 && !(fabs(d) > e) ? FA_REACHED_UNSURE : 0;
  if (x->value[a] == x->value[b]) { /* half to each; if it may not be a tie, all or nothing: half +- half */
    *weight = 0.5;
    *spread = unsure ? 0.5 : 0;
    return FA_REACHED_BY_VALUE;
  }
  const bool first = (x->value[a] < x->value[b]) == (n->op == FA_EXPR_MIN);
  return (first == (k == 0) ? FA_REACHED_BY_VALUE : 0) | unsure;
}

static bool has_slope(const fa_expr *e, int node) {
  return e->node[node].type == FA_EXPR_FLOAT && e->node[node].op != FA_EXPR_TO_FLOAT;
}

static void step(fa_ref_expr *x, int node, int k, int n) {
  const int child = x->e->node[node].arg[k];
  for (int lane = 0; lane < n; ++lane) {
    const int64_t from = (int64_t)node * L + lane, to = (int64_t)child * L + lane;
    double weight, spread;
    const uint8_t how = follows(x, node, k, lane, &weight, &spread), before = x->reached[from];
    x->reached[to] = (uint8_t)((before & how & FA_REACHED_BY_VALUE) | ((before | how) & FA_REACHED_UNSURE));
    /* surely not reached: no bits; reached only if rounding decides so: only FA_REACHED_UNSURE */
    if (!(how & FA_REACHED_BY_VALUE) && !(how & FA_REACHED_UNSURE)) x->reached[to] = FA_REACHED_NOT;
    if (before == FA_REACHED_NOT || x->reached[to] == FA_REACHED_NOT) {
      x->reached[to] = FA_REACHED_NOT;
      continue;
    }
    const fa_local f = local_of(x, node, k, lane);
    const double s = x->derivative[from], v = s * weight * f.v;
    const double s_e = times(x->derivative_e[from], weight + spread) + times(fabs(s), spread);
    double e = times((weight + spread) * fabs(s), f.e) + times(s_e, fabs(f.v) + f.e);
    if (v != 0 || e > 0) e += 2 * u * (fabs(v) + e) + tiny;
    if (x->fault[from] || isnan(e) || fabs(v) > FLT_MAX) e = INFINITY;
    x->derivative[to] = v;
    x->derivative_e[to] = e;
  }
}

void fa_ref_expr_derive(fa_ref_expr *x, int n) {
  const fa_expr *e = x->e;
  memset(x->reached, FA_REACHED_NOT, (size_t)e->n * L);
  for (int lane = 0; lane < n; ++lane) {
    const int64_t at = (int64_t)e->root * L + lane;
    x->derivative[at] = 1;
    x->derivative_e[at] = 0;
    x->reached[at] = x->fault[at] || !has_slope(e, e->root) ? FA_REACHED_NOT : FA_REACHED_BY_VALUE;
  }
  for (int node = e->root; node >= 0; --node) {
    const fa_expr_node *t = &e->node[node];
    if (!has_slope(e, node) || t->op == FA_EXPR_FLOOR || t->op == FA_EXPR_CEIL || t->op == FA_EXPR_LOAD)
      continue;
    for (int k = t->op == FA_EXPR_SELECT ? 1 : 0; k < t->n_args; ++k)
      if (has_slope(e, t->arg[k])) step(x, node, k, n);
  }
}

void fa_ref_expr_share(const fa_ref_expr *x, int node, int lane, double *value, double *error) {
  const int64_t at = (int64_t)node * L + lane;
  const uint8_t how = x->reached[at];
  const double v = x->derivative[at], e = x->derivative_e[at];
  *value = *error = 0;
  if (how == FA_REACHED_NOT) return;
  if (!isfinite(v)) { /* a fault only where it is reached */
    *value = how & FA_REACHED_BY_VALUE ? NAN : 0;
    *error = INFINITY;
    return;
  }
  *value = how & FA_REACHED_BY_VALUE ? v : 0;
  *error = how & FA_REACHED_UNSURE ? e + fabs(v) : e;
}
