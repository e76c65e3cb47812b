/* score_mod, a warp at each place of its scratch: the scores of the wave's rows in place, their errors, and derivatives. */
#ifndef FA_REF_CUDA_MODIFY_CUH
#define FA_REF_CUDA_MODIFY_CUH

#include "cases/tensors/set.h"
#include "ref/cuda/chain.cuh"

/* Buffers were made float64, and dense. */
FA_DEVICE double fetch_captured(const fa_tensor *t, const int64_t *index) {
  int64_t at = 0;
  for (int a = 0; a < t->rank; ++a) at = at * t->shape[a] + index[a];
  return ((const double *)(const void *)t->data)[at];
}
#define FA_EXPR_STRIDE WARP
#define fa_expr_fetch fetch_captured
#include "ref/mods/score_step.h"

/* The evaluator at a place. */
FA_DEVICE fa_ref_expr evaluator_at(const fa_judge_job *x, int64_t place) {
  const fa_judge_program *program = x->mod.program;
  const int64_t rows = (int64_t)program->expr.n * FA_JUDGE_LANES;
  fa_ref_expr out;
  memset(&out, 0, sizeof out);
  out.e = &program->expr;
  out.in = &program->in;
  out.fast = x->c->profile->fast_functions;
  out.value = (double *)(void *)(x->mod.scratch + place * x->mod.place_bytes);
  out.error = out.value + rows;
  out.derivative = out.error + rows;
  out.derivative_e = out.derivative + rows;
  out.fault = (int *)(void *)(out.derivative_e + rows);
  out.reached = (uint8_t *)(out.fault + rows);
  return out;
}

/* Values, errors and faults of every node, each lane its pair's. */
FA_DEVICE void evaluate(const fa_ref_expr *t, const fa_ref_pairs *pairs) {
  for (int node = 0; node < t->e->n; ++node) {
    const fa_lane r = fa_expr_node_lane(t, pairs, node, lane());
    const int64_t at = (int64_t)node * FA_EXPR_STRIDE + lane();
    t->value[at] = r.v;
    t->error[at] = r.e;
    t->fault[at] = r.fault;
  }
}

/* As fa_ref_expr_derive. */
FA_DEVICE void derive(fa_ref_expr *t) {
  const fa_expr *e = t->e;
  const int64_t root = (int64_t)e->root * FA_EXPR_STRIDE + lane();
  for (int node = 0; node < e->n; ++node)
    t->reached[(int64_t)node * FA_EXPR_STRIDE + lane()] = FA_REACHED_NOT;
  t->derivative[root] = 1;
  t->derivative_e[root] = 0;
  if (t->fault[root] == 0 && fa_expr_has_slope(e, e->root)) t->reached[root] = FA_REACHED_BY_VALUE;
  for (int node = e->root; node >= 0; --node)
    for (int k = fa_expr_first_slope(e, node); k < e->node[node].n_args; ++k)
      if (fa_expr_has_slope(e, e->node[node].arg[k])) fa_expr_step_lane(t, node, k, lane());
}

/* A pair without a value, or whose value rounding decides, makes the case itself wrong: that is the CPU's to say. */
FA_DEVICE bool has_no_value(const fa_ref_expr *t, const fa_judge_score *before) {
  const int64_t root = (int64_t)t->e->root * FA_EXPR_STRIDE + lane();
  return t->fault[root] != 0 || t->value[root] == INFINITY ||
         fa_mod_is_unsure(t->value[root], t->error[root]) || fa_mod_amplifies(t->error[root], before->e);
}

/* Writes the derivatives of the chain so far. exact: of the last evaluation, whose arguments had no error. */
FA_DEVICE void keep_slope(const fa_judge_job *x, const fa_judge_score *before, int64_t pair, double exact,
                          double v, double v_error, bool hidden) {
  float cap = before->slope, cap_err = before->slope_error;
  fa_mod_chain(hidden ? 0 : v, hidden ? 0 : v_error, &cap, &cap_err);
  if (!hidden && (exact != exact || v != v || v_error == INFINITY))
    raise_flag(&x->found->flags, FA_JUDGE_NO_VALUE);
  x->mod.slope[pair] = hidden ? 0 : exact * before->factor;
  x->mod.cap[pair] = cap;
  x->mod.cap_err[pair] = cap_err;
}

/* pairs: of the lanes, from the first lane's on; before: what score_mod is given. */
FA_DEVICE void modify_pair(const fa_judge_job *x, fa_ref_expr *t, fa_ref_pairs *pairs,
                           const fa_judge_score *before, int64_t pair, bool hidden) {
  const int64_t root = (int64_t)t->e->root * FA_EXPR_STRIDE + lane();
  double exact = 0, v = 0, v_error = 0, none;
  x->s[pair] = before->x;
  x->e[pair] = before->e;
  if (x->mod.before) {
    x->mod.before[pair] = before->x;
    x->mod.before_error[pair] = before->e;
  }
  pairs->error = NULL;
  evaluate(t, pairs);
  const double value = t->value[root];
  bool bad = t->fault[root] != 0 || value == INFINITY;
  if (x->mod.slope) derive(t);
  if (x->mod.slope) fa_mod_slope(t, lane(), &exact, &none);
  pairs->error = x->e + (pair - lane());
  evaluate(t, pairs);
  if (x->mod.slope) derive(t);
  if (x->mod.slope) fa_mod_slope(t, lane(), &v, &v_error);
  bad |= has_no_value(t, before);
  if (bad && !hidden) raise_flag(&x->found->flags, FA_JUDGE_NO_VALUE);
  x->s[pair] = bad ? 0 : value;
  x->e[pair] = hidden ? 0 : fa_mod_up(t->error[root]);
  if (x->mod.slope) keep_slope(x, before, pair, exact, v, v_error, hidden);
}

FA_DEVICE fa_ref_pairs pairs_of_row(const fa_judge_place *p) {
  fa_ref_pairs pairs;
  memset(&pairs, 0, sizeof pairs);
  pairs.b = p->head->b;
  pairs.h = p->b->h;
  pairs.i = p->i;
  pairs.seqlen_q = p->e->sq;
  pairs.seqlen_k = p->e->sk;
  return pairs;
}

FA_DEVICE void modify_row(const fa_judge_job *x, fa_ref_expr *t, const fa_judge_place *p) {
  const fa_judge_chain chain = chain_of(x, p);
  fa_ref_pairs pairs = pairs_of_row(p);
  for (int64_t j0 = p->begin; j0 < p->end; j0 += WARP) {
    const int64_t j = j0 + lane(), pair = p->pair + j;
    if (j >= p->end) continue;
    const fa_judge_score before =
        begin_score<true>(x, &chain, x->s[pair], x->e[pair], x->turned_q ? x->w[pair] : 0, j);
    pairs.j0 = p->b->j_begin + j0;
    pairs.score = x->s + (pair - lane());
    modify_pair(x, t, &pairs, &before, pair, is_hidden(x, &chain, j));
  }
}

FA_DEVICE void fa_judge_modify(const fa_judge_job *x, int64_t place) {
  fa_ref_expr t = evaluator_at(x, place);
  for (int64_t row = place; row < x->mod.rows; row += x->mod.places) {
    const fa_judge_place p = place_of(x, row);
    modify_row(x, &t, &p);
  }
}

#endif
