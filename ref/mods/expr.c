/* Values of an expression's nodes, with their errors. */
#include "ref/mods/expr_rows.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Error of one rounding to f32, of flushing a subnormal, and of functions and divisions as kernels may
 * compute them. */
static const double u = 0x1p-24, tiny = 0x1p-126, eps_divide = 0x1p-22;

enum { L = FA_EXPR_LANES };

fa_ref_function_error fa_ref_function_error_of(fa_expr_op op, bool fast) {
  const bool wave = op == FA_EXPR_SIN || op == FA_EXPR_COS;
  if (fast && op == FA_EXPR_TANH) return (fa_ref_function_error){0x1p-11, 0};
  if (fast && op == FA_EXPR_LOG) return (fa_ref_function_error){0x1p-21, 0x1p-21};
  if (fast && wave) return (fa_ref_function_error){0x1p-21, 0x1p-20};
  return (fa_ref_function_error){0x1p-21, 0};
}

fa_status fa_ref_expr_init(fa_ref_expr *x, const fa_expr *e, const fa_tensors *in, fa_error *err) {
  const size_t rows = (size_t)e->n * L;
  *x = (fa_ref_expr){.e = e, .in = in};
  if (e->n == 0) return FA_OK;
  x->memory = calloc(rows, 4 * sizeof(double) + sizeof(int) + 2 * sizeof(uint8_t));
  if (!x->memory) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory for an expression");
  x->value = x->memory;
  x->error = x->value + rows;
  x->derivative = x->error + rows;
  x->derivative_e = x->derivative + rows;
  x->fault = (int *)(void *)(x->derivative_e + rows);
  x->reached = (uint8_t *)(x->fault + rows);
  x->uniform = x->reached + rows;
  x->clean = x->uniform + e->n;
  for (int node = 0; node < e->n; ++node) {
    const fa_expr_node *n = &e->node[node];
    x->uniform[node] = n->op != FA_EXPR_SCORE && n->op != FA_EXPR_KV_IDX;
    for (int k = 0; k < n->n_args; ++k) x->uniform[node] &= x->uniform[n->arg[k]];
  }
  return FA_OK;
}

void fa_ref_expr_free(fa_ref_expr *x) {
  free(x->memory);
  *x = (fa_ref_expr){0};
}

/* One lane: a value, its error, its fault (0: none). */
typedef struct fa_lane {
  double v, e;
  int fault;
} fa_lane;

/* ---- ints and conditions ---- */

static fa_lane int_lane(double v, double e, int node) {
  const bool fits = v >= INT32_MIN && v <= INT32_MAX;
  return (fa_lane){fits ? v : 0, e, fits || e != 0 ? 0 : node + 1};
}

static fa_lane int_binary(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const double e = fmax(a.e, b.e);
  switch (op) {
  case FA_EXPR_ADD:
    return int_lane(a.v + b.v, e, node);
  case FA_EXPR_SUB:
    return int_lane(a.v - b.v, e, node);
  case FA_EXPR_MUL: /* inexact only far out of range */
    return int_lane(a.v * b.v, e, node);
  case FA_EXPR_MIN:
    return (fa_lane){fmin(a.v, b.v), e, 0};
  case FA_EXPR_MAX:
    return (fa_lane){fmax(a.v, b.v), e, 0};
  default:
    break;
  }
  if (b.v == 0) return (fa_lane){0, e, e != 0 ? 0 : node + 1};
  if (op == FA_EXPR_DIV) return int_lane(trunc(a.v / b.v), e, node);
  return int_lane(a.v == INT32_MIN && b.v == -1 ? 0 : fmod(a.v, b.v), e, node);
}

static fa_lane compare(fa_expr_op op, fa_lane a, fa_lane b, bool floats) {
  const double d = a.v - b.v, e = a.e + b.e; /* inf - inf: equal */
  const bool less = a.v < b.v, equal = a.v == b.v;
  const bool v = op == FA_EXPR_LT   ? less
                 : op == FA_EXPR_LE ? less || equal
                 : op == FA_EXPR_GT ? !less && !equal
                 : op == FA_EXPR_GE ? !less
                 : op == FA_EXPR_EQ ? equal
                                    : !equal;
  const bool unsure = floats ? e > 0 && !(fabs(d) > e) : e > 0;
  return (fa_lane){v, unsure, 0};
}

/* If one side surely decides alone (false for &&, true for ||), the other does not count, not even its
 * faults. */
static fa_lane logical(fa_expr_op op, fa_lane a, fa_lane b) {
  const double alone = op == FA_EXPR_OR;
  if (a.fault) return a;
  if (a.v == alone && a.e == 0) return (fa_lane){alone, 0, 0};
  if (b.fault) return a.e == 0 ? b : (fa_lane){a.v, 1, 0};
  if (b.v == alone && b.e == 0) return (fa_lane){alone, 0, 0};
  return (fa_lane){op == FA_EXPR_OR ? a.v != 0 || b.v != 0 : a.v != 0 && b.v != 0, fmax(a.e, b.e), 0};
}

/* ---- floats ---- */

/* A result with its error so far, rounded by an operation of relative error eps. */
static fa_lane float_lane(double v, double e, double eps, bool from_infinite, int node) {
  if (isnan(v)) return (fa_lane){0, INFINITY, e == INFINITY ? 0 : node + 1};
  if (isinf(v)) return (fa_lane){v, e == INFINITY ? e : 0, from_infinite ? 0 : node + 1};
  if (v == 0 && e == 0) return (fa_lane){v, 0, 0};
  e += eps * (fabs(v) + e) + tiny;
  if (fabs(v) > FLT_MAX) return (fa_lane){0, INFINITY, node + 1};
  if (!(fabs(v) + e <= FLT_MAX)) e = INFINITY;
  return (fa_lane){v, e, 0};
}

/* a b for errors: an infinite error means unknown and stays infinite. */
static double times(double a, double b) {
  return isinf(a) || isinf(b) ? INFINITY : a * b;
}

/* Sums and products of exact operands are exact if the result fits in f32. */
static bool is_exact(fa_lane a, fa_lane b, double v) {
  return a.e == 0 && b.e == 0 && fabs(v) <= FLT_MAX && (double)(float)v == v &&
         (v == 0 || fabs(v) >= FLT_MIN);
}

/* The value of exact arguments, about which nothing is known. */
static fa_lane lost(fa_lane r) {
  return (fa_lane){r.fault ? 0 : r.v, INFINITY, 0};
}

static fa_lane float_binary(fa_expr_op op, fa_lane a, fa_lane b, int node) {
  const bool infinite = isinf(a.v) || isinf(b.v);
  double v = 0, e = 0;
  if (a.e == INFINITY || b.e == INFINITY)
    return lost(float_binary(op, (fa_lane){a.v, 0, 0}, (fa_lane){b.v, 0, 0}, node));
  switch (op) {
  case FA_EXPR_MIN:
  case FA_EXPR_MAX:
    v = op == FA_EXPR_MIN ? fmin(a.v, b.v) : fmax(a.v, b.v);
    if (infinite) return v == a.v ? a : b;
    return (fa_lane){v, fmax(a.e, b.e), 0};
  case FA_EXPR_ADD:
  case FA_EXPR_SUB:
    v = op == FA_EXPR_ADD ? a.v + b.v : a.v - b.v;
    e = infinite ? 0 : a.e + b.e;
    break;
  case FA_EXPR_MUL:
    v = a.v * b.v;
    e = infinite ? 0 : times(fabs(a.v), b.e) + times(fabs(b.v), a.e) + times(a.e, b.e);
    break;
  default:
    v = a.v / b.v;
    if (infinite)
      e = 0;
    else if (b.e == 0)
      e = b.v == 0 ? 0 : a.e / fabs(b.v);
    else
      e = fabs(b.v) > b.e ? (a.e + times(fabs(v), b.e)) / (fabs(b.v) - b.e) : INFINITY;
    if (e == INFINITY && !isfinite(v)) v = 0;
    return float_lane(v, e, eps_divide, infinite, node);
  }
  if (!infinite && is_exact(a, b, v)) return (fa_lane){v, 0, 0};
  return float_lane(v, e, u, infinite, node);
}

/* float_lane for a function whose result may also have an absolute error: never exact. */
static fa_lane function_lane(double v, double e, fa_ref_function_error f, bool from_infinite, int node) {
  return float_lane(v, isinf(v) ? e : e + f.floor, f.eps, from_infinite, node);
}

static fa_lane log_lane(fa_lane a, fa_ref_function_error f, int node) {
  if (a.v > 0 && a.v > a.e) return function_lane(log(a.v), -log1p(-a.e / a.v), f, isinf(a.v), node);
  if (a.e == 0 || a.v + a.e < 0) return function_lane(log(a.v), 0, f, false, node);
  return (fa_lane){a.v > 0 ? log(a.v) : 0, INFINITY, 0};
}

static fa_lane sqrt_lane(fa_lane a, int node) {
  if (a.e == 0 || a.v >= a.e) { /* sqrt(x) - sqrt(x - e) */
    const double y = sqrt(a.v);
    return float_lane(y, a.e == 0 ? 0 : a.e / (y + sqrt(a.v - a.e)), eps_divide, isinf(a.v), node);
  }
  if (a.v + a.e < 0) return float_lane(sqrt(a.v), 0, eps_divide, false, node);
  return (fa_lane){a.v > 0 ? sqrt(a.v) : 0, INFINITY, 0};
}

static fa_lane float_unary(fa_expr_op op, fa_lane a, bool fast, int node) {
  const double size = fabs(a.v), e = a.e;
  const fa_ref_function_error f = fa_ref_function_error_of(op, fast);
  const bool infinite = isinf(a.v);
  double y;
  if (e == INFINITY) return lost(float_unary(op, (fa_lane){a.v, 0, 0}, fast, node));
  switch (op) {
  case FA_EXPR_NEG:
    return (fa_lane){-a.v, e, 0};
  case FA_EXPR_ABS:
    return (fa_lane){size, e, 0};
  case FA_EXPR_EXP: /* kernels may multiply by log2(e) first: |x| roundings of the exponent */
    y = exp(a.v);
    if (infinite) return float_lane(y, e, 0, true, node);
    return float_lane(y, times(y, expm1(e)), f.eps + 2 * u * size, false, node);
  case FA_EXPR_LOG:
    return log_lane(a, f, node);
  case FA_EXPR_SQRT:
    return sqrt_lane(a, node);
  case FA_EXPR_TANH:
    y = tanh(a.v);
    return function_lane(y, infinite ? 0 : fmin(2, times(e, fmin(1, (1 - fabs(y)) * (1 + fabs(y)) + 2 * e))),
                         f, true, node);
  case FA_EXPR_SIN:
    return function_lane(sin(a.v), fmin(2, times(e, fmin(1, fabs(cos(a.v)) + e))), f, false, node);
  case FA_EXPR_COS:
    return function_lane(cos(a.v), fmin(2, times(e, fmin(1, fabs(sin(a.v)) + e))), f, false, node);
  default: /* floor */
    y = floor(a.v);
    if (infinite || e == 0) return (fa_lane){y, e, 0};
    return (fa_lane){y, fmax(floor(a.v + e) - y, y - floor(a.v - e)), 0};
  }
}

static fa_lane to_float(fa_lane a) {
  if (a.e > 0) return (fa_lane){a.v, INFINITY, 0};
  return (fa_lane){a.v, (double)(float)a.v == a.v ? 0 : u * fabs(a.v), 0};
}

/* The branch that the condition selects. If rounding may decide, the error covers the other branch. */
static fa_lane select_lane(fa_lane c, fa_lane yes, fa_lane no, bool is_float) {
  const fa_lane taken = c.v != 0 ? yes : no, other = c.v != 0 ? no : yes;
  if (c.fault) return c;
  if (c.e == 0 || taken.fault) return taken;
  const bool same = taken.v == other.v && !other.fault;
  if (!is_float) return (fa_lane){taken.v, same ? fmax(taken.e, other.e) : 1, 0};
  const double apart = same ? 0 : fabs(taken.v - other.v);
  return (fa_lane){taken.v, other.fault ? INFINITY : fmax(taken.e, apart + other.e), 0};
}

/* ---- nodes ---- */

static fa_lane get(const fa_ref_expr *x, int node, int lane) {
  const int64_t at = (int64_t)node * L + lane;
  return (fa_lane){x->value[at], x->error[at], x->fault[at]};
}

/* The axis whose index is out of range, or -1; *unsure if rounding may decide an index. */
static int bad_axis(const fa_ref_expr *x, const fa_expr_node *n, int lane, bool *unsure) {
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int bad = -1;
  *unsure = false;
  for (int k = n->n_args - 1; k >= 0; --k) {
    const fa_lane index = get(x, n->arg[k], lane);
    if (index.e > 0) *unsure = true;
    if (!(index.v >= 0 && index.v < (double)t->shape[k])) bad = k;
  }
  return bad;
}

int64_t fa_ref_expr_element(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  int64_t at = 0;
  for (int k = 0; k < n->n_args; ++k) at = at * t->shape[k] + (int64_t)get(x, n->arg[k], lane).v;
  return at;
}

static fa_lane load_lane(const fa_ref_expr *x, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  bool unsure;
  const double lost = n->type == FA_EXPR_FLOAT ? INFINITY : 1;
  if (bad_axis(x, n, lane, &unsure) >= 0) return (fa_lane){0, lost, unsure ? 0 : node + 1};
  int64_t index[FA_MAX_RANK] = {0};
  for (int k = 0; k < n->n_args; ++k) index[k] = (int64_t)get(x, n->arg[k], lane).v;
  const double v = fa_tensor_get(t, index);
  if (isnan(v) || isinf(v)) return (fa_lane){0, lost, unsure ? 0 : node + 1};
  return (fa_lane){v, unsure ? lost : 0, 0};
}

static fa_lane leaf_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  switch (n->op) {
  case FA_EXPR_SCORE:
    return (fa_lane){p->score[lane], p->error ? p->error[lane] : 0, 0};
  case FA_EXPR_B:
    return (fa_lane){(double)p->b, 0, 0};
  case FA_EXPR_H:
    return (fa_lane){(double)p->h, 0, 0};
  case FA_EXPR_Q_IDX:
    return (fa_lane){(double)p->i, 0, 0};
  case FA_EXPR_KV_IDX:
    return (fa_lane){(double)(p->j0 + lane), 0, 0};
  case FA_EXPR_SEQLEN_Q:
    return (fa_lane){(double)p->seqlen_q, 0, 0};
  case FA_EXPR_SEQLEN_K:
    return (fa_lane){(double)p->seqlen_k, 0, 0};
  default:
    return (fa_lane){n->value, 0, 0};
  }
}

static fa_lane unary_lane(fa_expr_op op, fa_expr_type type, fa_lane a, bool fast, int node) {
  if (op == FA_EXPR_TO_BOOL) return (fa_lane){a.v != 0, a.e, 0};
  if (op == FA_EXPR_TO_INT) return a;
  if (op == FA_EXPR_TO_FLOAT) return to_float(a);
  if (op == FA_EXPR_NOT) return (fa_lane){a.v == 0, a.e, 0};
  if (type == FA_EXPR_FLOAT) return float_unary(op, a, fast, node);
  return int_lane(op == FA_EXPR_NEG ? -a.v : fabs(a.v), a.e, node);
}

static fa_lane node_lane(const fa_ref_expr *x, const fa_ref_pairs *p, int node, int lane) {
  const fa_expr_node *n = &x->e->node[node];
  if (n->n_args == 0 && n->op != FA_EXPR_LOAD) return leaf_lane(x, p, node, lane);
  const fa_lane a = n->n_args ? get(x, n->arg[0], lane) : (fa_lane){0, 0, 0};
  if (n->op == FA_EXPR_AND || n->op == FA_EXPR_OR) return logical(n->op, a, get(x, n->arg[1], lane));
  if (n->op == FA_EXPR_SELECT)
    return select_lane(a, get(x, n->arg[1], lane), get(x, n->arg[2], lane), n->type == FA_EXPR_FLOAT);
  for (int k = 0; k < n->n_args; ++k) {
    const fa_lane part = get(x, n->arg[k], lane);
    if (part.fault) return part;
  }
  if (n->op == FA_EXPR_LOAD) return load_lane(x, node, lane);
  if (n->n_args == 1) return unary_lane(n->op, n->type, a, x->fast, node);
  const fa_lane b = get(x, n->arg[1], lane);
  const bool floats = x->e->node[n->arg[0]].type == FA_EXPR_FLOAT;
  if (n->type == FA_EXPR_BOOL) return compare(n->op, a, b, floats);
  return floats ? float_binary(n->op, a, b, node) : int_binary(n->op, a, b, node);
}

void fa_ref_expr_eval(fa_ref_expr *x, const fa_ref_pairs *p) {
  for (int node = 0; node < x->e->n; ++node) {
    if (!x->uniform[node] && fa_ref_expr_row_at_once(x, p, node)) continue;
    for (int lane = 0; lane < (x->uniform[node] ? 1 : p->n); ++lane) {
      const fa_lane r = node_lane(x, p, node, lane);
      const int64_t at = (int64_t)node * L + lane;
      x->value[at] = r.v;
      x->error[at] = r.e;
      x->fault[at] = r.fault;
    }
    fa_ref_expr_row_done(x, p, node);
  }
}

/* ---- explaining faults ---- */

static void explain_load(const fa_ref_expr *x, const fa_expr_node *n, int lane, char *text, size_t size) {
  const fa_tensor *t = &x->in->t[FA_T_BUFFER_0 + n->buffer];
  bool unsure;
  const int axis = bad_axis(x, n, lane, &unsure);
  if (axis < 0)
    snprintf(text, size, "the buffer holds no finite number there");
  else
    snprintf(text, size, "index %d is %.0f, not in 0 .. %lld", axis, get(x, n->arg[axis], lane).v,
             (long long)t->shape[axis] - 1);
}

/* Follows the tree from the root to the operation that rounding decides. */
static int undecided(const fa_ref_expr *x, int lane) {
  int node = x->e->root;
  for (int k = 0; k < x->e->node[node].n_args; ++k) {
    const int part = x->e->node[node].arg[k];
    const double e = get(x, part, lane).e;
    if (x->e->node[part].type == FA_EXPR_FLOAT ? e < INFINITY : e == 0) continue;
    node = part;
    k = -1;
  }
  return node;
}

void fa_ref_expr_explain(const fa_ref_expr *x, int lane, char *text, size_t size) {
  const fa_lane root = get(x, x->e->root, lane);
  const int node = root.fault ? root.fault - 1 : undecided(x, lane);
  const fa_expr_node *n = &x->e->node[node];
  char what[160], a[32] = "", b[32] = "";
  if (n->n_args > 0) snprintf(a, sizeof a, "%.10g", get(x, n->arg[0], lane).v);
  if (n->n_args > 1) snprintf(b, sizeof b, "%.10g", get(x, n->arg[1], lane).v);
  if (!root.fault)
    snprintf(what, sizeof what,
             n->type == FA_EXPR_FLOAT ? "rounding decides whether there is a value" : "rounding decides it");
  else if (n->op == FA_EXPR_LOAD)
    explain_load(x, n, lane, what, sizeof what);
  else if (n->n_args == 2)
    snprintf(what, sizeof what, "%s %s %s has no value in %s", a, fa_expr_op_text(n->op), b,
             n->type == FA_EXPR_INT ? "int32" : "f32");
  else
    snprintf(what, sizeof what, "%s of %s has no value in %s", fa_expr_op_text(n->op), a,
             n->type == FA_EXPR_INT ? "int32" : "f32");
  snprintf(text, size, "column %d: %s", n->at + 1, what);
}
