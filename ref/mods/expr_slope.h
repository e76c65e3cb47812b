/* One step of reverse accumulation over an expression's tree, in one lane (ref/mods/expr_derive.c); as expr_node.h. */
#ifndef FA_REF_MODS_EXPR_SLOPE_H
#define FA_REF_MODS_EXPR_SLOPE_H

#include "ref/mods/expr_node.h"
#include "ref/mods/lane_slopes.h"

typedef struct fa_local { /* one factor of the chain: its value and error */
  double v, e;
} fa_local;

FA_SHARED fa_local fa_local_of(double v, double e) {
  fa_local out;
  out.v = v;
  out.e = e;
  return out;
}

FA_SHARED fa_local over(double a, double a_error, double b, double b_error) {
  const double v = a / b;
  if (b_error > 0 && !(fabs(b) > b_error)) return fa_local_of(isfinite(v) ? v : 0, INFINITY);
  if (b == 0) return fa_local_of(v, 0);
  return fa_local_of(v, (a_error + fa_lane_times(fabs(v), b_error)) / (fabs(b) - b_error) +
                            FA_LANE_EPS_DIVIDE * fabs(v));
}

/* A sine or cosine y whose argument's error changes it by at most moved. */
FA_SHARED fa_local wave(const fa_ref_expr *x, double y, double moved) {
  const fa_ref_function_error f = fa_lane_function_error(FA_EXPR_COS, x->fast);
  return fa_local_of(y, moved + f.eps * fabs(y) + f.floor);
}

FA_SHARED fa_local of_lane(fa_lane a) {
  return fa_local_of(a.v, a.e);
}

FA_SHARED fa_local negative(fa_local a) {
  return fa_local_of(-a.v, a.e);
}

/* d node / d argument k. */
FA_SHARED fa_local local_of(const fa_ref_expr *x, int node, int k, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const int64_t at = (int64_t)node * FA_EXPR_STRIDE + lane, a = (int64_t)n->arg[0] * FA_EXPR_STRIDE + lane;
  const int64_t b = n->n_args > 1 ? (int64_t)n->arg[1] * FA_EXPR_STRIDE + lane : a;
  const double va = x->value[a], ea = x->error[a], vb = x->value[b], eb = x->error[b];
  const double y = x->value[at], ey = x->error[at];
  switch (n->op) {
  case FA_EXPR_NEG:
    return fa_local_of(-1, 0);
  case FA_EXPR_ABS:
    return fa_local_of(va > 0 ? 1 : va < 0 ? -1 : 0, ea > 0 && !(fabs(va) > ea) ? 2 : 0);
  case FA_EXPR_EXP:
    return fa_local_of(y, ey);
  case FA_EXPR_LOG:
    return over(1, 0, va, ea);
  case FA_EXPR_SQRT:
    return over(0.5, 0, y, ea == 0 && va == 0 ? 0 : ey);
  case FA_EXPR_TANH:
    return fa_local_of((1 - fabs(y)) * (1 + fabs(y)), 2 * fabs(y) * ey + ey * ey + 2 * FA_LANE_U);
  case FA_EXPR_SIN:
    return wave(x, cos(va), fa_lane_times(ea, fmin(1.0, fabs(sin(va)) + ea)));
  case FA_EXPR_COS:
    return wave(x, -sin(va), fa_lane_times(ea, fmin(1.0, fabs(cos(va)) + ea)));
  case FA_EXPR_ERF:
    return of_lane(fa_lane_erf_slope(fa_lane_of(va, ea, 0)));
  case FA_EXPR_SIGMOID:
    return of_lane(fa_lane_sigmoid_slope(fa_lane_of(y, ey, 0)));
  case FA_EXPR_POW:
    if (k == 0) return of_lane(fa_lane_pow_by_base(fa_lane_of(va, ea, 0), fa_lane_of(vb, eb, 0)));
    return of_lane(
        fa_lane_pow_by_exponent(fa_lane_of(va, ea, 0), fa_lane_of(vb, eb, 0), fa_lane_of(y, ey, 0), x->fast));
  case FA_EXPR_MUL:
    return k == 0 ? fa_local_of(vb, eb) : fa_local_of(va, ea);
  case FA_EXPR_DIV:
    return k == 0 ? over(1, 0, vb, eb) : negative(over(y, ey, vb, eb));
  case FA_EXPR_SUB:
    return fa_local_of(k == 0 ? 1 : -1, 0);
  default: /* sums, and operations that pass their argument through */
    return fa_local_of(1, 0);
  }
}

/* Whether argument k of a node is followed, as reached[] bits, and its factor, plus or minus spread. */
FA_SHARED uint8_t follows(const fa_ref_expr *x, int node, int k, int lane, double *weight, double *spread) {
  const fa_expr_node *n = &x->e->node[node];
  const int64_t a = (int64_t)n->arg[0] * FA_EXPR_STRIDE + lane;
  *weight = 1;
  *spread = 0;
  if (n->op == FA_EXPR_SELECT) {
    const uint8_t unsure = x->error[a] > 0 ? FA_REACHED_UNSURE : 0;
    return ((x->value[a] != 0) == (k == 1) ? FA_REACHED_BY_VALUE : 0) | unsure;
  }
  if (n->op != FA_EXPR_MIN && n->op != FA_EXPR_MAX) return FA_REACHED_BY_VALUE;
  const int64_t b = (int64_t)n->arg[1] * FA_EXPR_STRIDE + lane;
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

/* Argument k of a node whose own derivative is known. */
FA_SHARED void fa_expr_step_lane(fa_ref_expr *x, int node, int k, int lane) {
  const int child = x->e->node[node].arg[k];
  const int64_t from = (int64_t)node * FA_EXPR_STRIDE + lane, to = (int64_t)child * FA_EXPR_STRIDE + lane;
  double weight, spread;
  const uint8_t how = follows(x, node, k, lane, &weight, &spread), before = x->reached[from];
  x->reached[to] = (uint8_t)((before & how & FA_REACHED_BY_VALUE) | ((before | how) & FA_REACHED_UNSURE));
  /* surely not reached: no bits; reached only if rounding decides so: only FA_REACHED_UNSURE */
  if (!(how & FA_REACHED_BY_VALUE) && !(how & FA_REACHED_UNSURE)) x->reached[to] = FA_REACHED_NOT;
  if (before == FA_REACHED_NOT || x->reached[to] == FA_REACHED_NOT) {
    x->reached[to] = FA_REACHED_NOT;
    return;
  }
  const fa_local f = local_of(x, node, k, lane);
  const double s = x->derivative[from], v = s * weight * f.v;
  const double s_e = fa_lane_times(x->derivative_e[from], weight + spread) + fa_lane_times(fabs(s), spread);
  double e = fa_lane_times((weight + spread) * fabs(s), f.e) + fa_lane_times(s_e, fabs(f.v) + f.e);
  if (v != 0 || e > 0) e += 2 * FA_LANE_U * (fabs(v) + e) + FA_LANE_TINY;
  if (x->fault[from] || isnan(e) || fabs(v) > FLT_MAX) e = INFINITY;
  x->derivative[to] = v;
  x->derivative_e[to] = e;
}

FA_SHARED bool fa_expr_has_slope(const fa_expr *e, int node) {
  return e->node[node].type == FA_EXPR_FLOAT && e->node[node].op != FA_EXPR_TO_FLOAT;
}

/* The first argument through which derivatives may go; where they end, there is none. */
FA_SHARED int fa_expr_first_slope(const fa_expr *e, int node) {
  const fa_expr_node *n = &e->node[node];
  const bool ends = n->op == FA_EXPR_FLOOR || n->op == FA_EXPR_CEIL || n->op == FA_EXPR_LOAD;
  return ends || !fa_expr_has_slope(e, node) ? n->n_args : n->op == FA_EXPR_SELECT ? 1 : 0;
}

/* What node (a SCORE or LOAD leaf) contributes to the derivative. NaN: it has none. */
FA_SHARED void fa_expr_share(const fa_ref_expr *x, int node, int lane, double *value, double *error) {
  const int64_t at = (int64_t)node * FA_EXPR_STRIDE + lane;
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

#endif
