/* Gradients of the buffers that score_mod reads, a warp at each place: its rows' pairs go into sums of the place's own, one after
 * another, so that every sum has one order. */
#ifndef FA_REF_CUDA_DBUFFER_CUH
#define FA_REF_CUDA_DBUFFER_CUH

#include "ref/cuda/modify.cuh"

/* A pair that dropout drops has P Z = 0, but dS = -P delta. */
FA_DEVICE bool contributes(const fa_judge_job *x, int64_t pair) {
  const bool dropped = x->c->p->dropout.p > 0;
  return x->s[pair] != 0 || (dropped && (x->plain_ds[pair] != 0 || x->plain_ge[pair] > 0));
}

/* The element that a node reads, and what the lane's pair gives it. False: nothing. */
FA_DEVICE bool contribution_of(const fa_judge_job *x, const fa_ref_expr *t, const fa_judge_row *row,
                               double unit, int node, int64_t pair, fa_bound_contribution *out,
                               int64_t *element) {
  const double g = x->plain_ds[pair];
  double v, error;
  fa_expr_share(t, node, lane(), &v, &error);
  if (v != v || error == INFINITY) raise_flag(&x->found->flags, FA_JUDGE_NO_VALUE);
  if (v != v || (v == 0 && error == 0)) return false; /* not reached: its indices need not be in range */
  if (t->fault[(int64_t)node * FA_EXPR_STRIDE + lane()] != 0) return false;
  out->g = g;
  out->g_error = x->plain_ge[pair] * unit + x->c->profile->u_p_in_ds * fabs(g);
  out->p = x->s[pair];
  out->delta = row->delta;
  out->v = v;
  out->v_error = error;
  *element = x->mod.first[t->e->node[node].buffer] + fa_expr_element(t, node, lane());
  return true;
}

/* Lane by lane: several may have the same element. */
FA_DEVICE void add_in_order(fa_bound_element *sums, bool has, const fa_bound_contribution *c,
                            int64_t element) {
  for (int turn = 0; turn < WARP; ++turn) {
    if (turn == lane() && has) fa_bound_element_add(c, true, sums + element);
    warp_sync();
  }
}

FA_DEVICE void add_row(const fa_judge_job *x, fa_ref_expr *t, const fa_judge_place *p,
                       fa_bound_element *sums) {
  const fa_judge_row *row = x->row + p->row;
  const double unit = unit_of_ds(x, fa_bound_unit_of(p->head->largest_v)) * 1.0001;
  fa_ref_pairs pairs = pairs_of_row(p);
  for (int64_t j0 = p->begin; j0 < p->end; j0 += WARP) {
    const int64_t pair = p->pair + j0 + lane();
    const bool counts = j0 + lane() < p->end && contributes(x, pair);
    pairs.j0 = p->b->j_begin + j0;
    pairs.score = x->mod.before + (pair - lane());
    pairs.error = x->mod.before_error + (pair - lane());
    if (!warp_any(counts)) continue;
    if (counts) evaluate(t, &pairs);
    if (counts) derive(t);
    for (int node = 0; node < t->e->n; ++node) {
      const fa_expr_node *n = &t->e->node[node];
      fa_bound_contribution c = {0, 0, 0, 0, 0, 0};
      int64_t element = 0;
      if (n->op != FA_EXPR_LOAD || x->mod.first[n->buffer] < 0) continue;
      const bool has = counts && contribution_of(x, t, row, unit, node, pair, &c, &element);
      add_in_order(sums, has, &c, element);
    }
  }
}

FA_DEVICE void fa_judge_add_dbuffer(const fa_judge_job *x, int64_t place) {
  fa_ref_expr t = evaluator_at(x, place);
  for (int64_t row = place; row < x->mod.rows; row += x->mod.gradient_places) {
    const fa_judge_place p = place_of(x, row);
    add_row(x, &t, &p, x->mod.sums + place * x->mod.elements);
  }
}

/* After all waves: a row of a buffer. */
FA_DEVICE void fa_judge_settle_dbuffer(const fa_judge_job *x, int64_t at) {
  const fa_judge_gradient *to = &x->gradient;
  float most = 0;
  for (int64_t i = at * to->width + lane(); i < (at + 1) * to->width; i += WARP) {
    fa_bound_element sum;
    memset(&sum, 0, sizeof sum);
    for (int64_t place = 0; place < x->mod.gradient_places; ++place)
      fa_bound_element_join(x->mod.sums + place * x->mod.elements + to->first + i, &sum);
    to->value[i] = sum.value;
    to->accum[i] = fa_bound_element_accum(x->c, &sum);
    const float before = sum.n > 0 ? fa_bound_clamped(sum.before) : 0;
    most = before > most ? before : most;
  }
  most = warp_max(most);
  if (lane() == 0) to->scale[at] = most;
}

#endif
