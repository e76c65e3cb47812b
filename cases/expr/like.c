/* Decides whether an expression keeps different scores different. */
#include "cases/expr/ast.h"

#include <math.h>
#include <stdlib.h>

/* What is known about one node. */
typedef struct fa_likeness {
  bool knows;    /* depends on the score */
  bool like;     /* as spread out as scores: a shift, a moderate factor, negation, softcap's form */
  bool infinite; /* -inf or inf */
} fa_likeness;

static bool is_const(const fa_expr *e, int x) {
  while (e->node[x].op == FA_EXPR_TO_FLOAT) x = e->node[x].arg[0];
  return e->node[x].op == FA_EXPR_CONST;
}

static double const_of(const fa_expr *e, int x) {
  while (e->node[x].op == FA_EXPR_TO_FLOAT) x = e->node[x].arg[0];
  return e->node[x].value;
}

/* Returns c of the form c * tanh(like / c), or 0. */
static double softcap_of(const fa_expr *e, const fa_likeness *l, const fa_expr_node *n) {
  const int c = is_const(e, n->arg[0]) ? n->arg[0] : n->arg[1], t = c == n->arg[0] ? n->arg[1] : n->arg[0];
  if (n->op != FA_EXPR_MUL || !is_const(e, c) || e->node[t].op != FA_EXPR_TANH) return 0;
  const fa_expr_node *d = &e->node[e->node[t].arg[0]];
  if (d->op != FA_EXPR_DIV || !is_const(e, d->arg[1]) || !l[d->arg[0]].like) return 0;
  return const_of(e, d->arg[1]) == const_of(e, c) ? const_of(e, c) : 0;
}

static bool is_moderate(double factor) {
  return fabs(factor) >= 0.25 && fabs(factor) <= 4;
}

static fa_likeness likeness_of(const fa_expr *e, const fa_likeness *l, const fa_expr_node *n, double *cap) {
  fa_likeness r = {.knows = n->op == FA_EXPR_SCORE, .like = n->op == FA_EXPR_SCORE};
  for (int k = 0; k < n->n_args; ++k) r.knows |= l[n->arg[k]].knows;
  const fa_likeness *a = n->n_args > 0 ? &l[n->arg[0]] : NULL, *b = n->n_args > 1 ? &l[n->arg[1]] : NULL;
  switch (n->op) {
  case FA_EXPR_CONST:
    r.infinite = isinf(n->value);
    break;
  case FA_EXPR_NEG:
  case FA_EXPR_AS_FLOAT:
    r = *a;
    break;
  case FA_EXPR_ADD:
  case FA_EXPR_SUB:
    r.like = (a->like && !b->knows) || (b->like && !a->knows);
    break;
  case FA_EXPR_DIV:
    r.like = a->like && is_const(e, n->arg[1]) && is_moderate(1 / const_of(e, n->arg[1]));
    break;
  case FA_EXPR_MUL: {
    const double c = softcap_of(e, l, n);
    r.like = c > 0 || (a->like && is_const(e, n->arg[1]) && is_moderate(const_of(e, n->arg[1]))) ||
             (b->like && is_const(e, n->arg[0]) && is_moderate(const_of(e, n->arg[0])));
    if (c > 0 && (*cap == 0 || c < *cap)) *cap = c;
    break;
  }
  case FA_EXPR_SELECT: {
    const fa_likeness *c = &l[n->arg[2]];
    r.like = !a->knows && (b->like || c->like) && (b->like || b->infinite) && (c->like || c->infinite);
    break;
  }
  default:
    break;
  }
  return r;
}

bool fa_expr_like_score(const fa_expr *e, double *cap) {
  fa_likeness *l = malloc((size_t)e->n * sizeof *l);
  *cap = 0;
  if (!l) return false;
  for (int x = 0; x < e->n; ++x) l[x] = likeness_of(e, l, &e->node[x], cap);
  const bool like = l[e->root].like;
  free(l);
  return like;
}
