/* Forward, a warp a row: scores, exponentials and the terms of their bounds, O and LSE. */
#ifndef FA_REF_CUDA_FORWARD_CUH
#define FA_REF_CUDA_FORWARD_CUH

#include "ref/cuda/chain.cuh"

/* How often the row's list names one key at most, 1 where it names none. */
FA_DEVICE double most_times(const fa_judge_job *x, const fa_judge_place *p) {
  const int64_t from = want_of(x, p) / x->c->heads_q * x->times_width;
  double most = 1;
  for (int64_t j = lane(); j < p->e->sk; j += WARP) most = fmax(most, load_element(&x->times, from + j));
  return warp_max(most);
}

/* With the row's sink, if there is one. */
FA_DEVICE fa_bound_maxima maxima_of(const fa_judge_place *p, double max, double sum) {
  fa_bound_maxima out;
  out.key_m = out.m = max;
  out.key_l = out.l = sum;
  if (!(p->b->sink > -INFINITY)) return out;
  const fa_ref_joined both = fa_ref_sink_joined(max, sum, p->b->sink);
  out.m = both.m;
  out.l = both.l;
  return out;
}

/* Scores in place, their errors in e; the row's maximum and sum of exponentials. */
FA_DEVICE void fa_judge_scores(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  fa_judge_row *row = x->row + p.row;
  const fa_judge_chain chain = chain_of(x, &p);
  double *s = x->s + p.pair, most = -INFINITY, sum = 0;
  float *e = x->e + p.pair, *flips = x->turned_q ? x->w + p.pair : NULL;
  for (int64_t j = p.begin + lane(); j < p.end; j += WARP) {
    const fa_judge_score score = score_of(x, &chain, s[j], e[j], flips ? flips[j] : 0, j, p.pair + j);
    s[j] = score.x;
    e[j] = score.e;
    most = score.x > most ? score.x : most;
  }
  most = warp_max(most);
  warp_sync();
  for (int64_t j = p.begin + lane(); j < p.end; j += WARP)
    sum += s[j] == -INFINITY ? 0 : fa_element_exp(s[j] - most);
  sum = warp_sum(sum);
  const fa_bound_maxima maxima = maxima_of(&p, most, sum);
  fa_bound_row t;
  fa_bound_row_begin(p.end - p.begin, maxima.m, maxima.l, &t);
  if (x->c->p->sinks.present && sum > 0) fa_bound_row_either_maximum(&maxima, &t);
  if (x->times.data) fa_bound_row_repeat(x->c, most_times(x, &p), &t);
  fa_bound_row_extra(x->c, &t);
  t.sink = fa_bound_sink_of_maxima(&maxima, p.b->sink, t.extra);
  if (t.least > 0)
    add_spread(
        &p, p.begin, p.end, [=](int64_t j) { return s[j]; }, &t.spread);
  if (lane() != 0) return;
  row->max = maxima.m;
  row->sum = maxima.l;
  row->key_max = most;
  row->key_sum = sum;
  row->t = t;
}

/* What the keys' exponents are off by, relative to their own maximum: of an LSE that leaves the sink out. score(u), error(u):
 * the pair's score, and its error. */
template <typename F, typename G, typename H>
FA_DEVICE double widest_alone(const fa_judge_job *x, const F &seen, const G &score, const H &error,
                              double max, double extra) {
  const fa_bound_exponents by = fa_bound_exponents_of(x->c, max, false, extra);
  float most = 0;
  FA_ROLLED
  for (int u = 0; u < PER_LANE; ++u) {
    if (!seen(u)) continue;
    const float off = fa_element_logit_error(error(u), score(u), max, by.a, by.s, by.k);
    most = off > most ? off : most;
  }
  return warp_max(most);
}

/* The row's, of all lanes' keys. */
FA_DEVICE fa_bound_largest joined_largest(const fa_bound_largest *of_lane) {
  fa_bound_largest out;
  out.most = warp_max(of_lane->most);
  const int first = -warp_max(of_lane->most == out.most ? -lane() : -WARP);
  const bool here = lane() == first;
  out.p = warp_max(here ? of_lane->p : 0.0);
  out.e = warp_max(here ? of_lane->e : 0.0);
  out.summed = warp_max(here ? of_lane->summed : 0.0);
  out.next = warp_max(here ? of_lane->next : of_lane->most);
  out.others = warp_sum(here ? of_lane->others : of_lane->others + of_lane->p * of_lane->summed);
  return out;
}

FA_DEVICE void clear_weights(const fa_judge_job *x, int64_t pair) {
  x->s[pair] = 0;
  x->w[pair] = x->w2[pair] = x->we[pair] = 0;
}

/* What all pairs of a row have in common: its maxima, its sum, and factor_of_kept. */
typedef struct fa_judge_sum {
  double max, sum, key_max, kept;
} fa_judge_sum;

/* A tile of a row, from key t0 on: P Z for O, and the terms of its bounds. */
FA_DEVICE void weigh_tile(const fa_judge_job *x, const fa_judge_place *p, int64_t t0, const fa_judge_sum *row,
                          const fa_bound_rounding *rounded, fa_bound_row *t, fa_bound_largest *largest,
                          double *error_sum) {
  FA_WARP_ARRAY(float, e, FA_BLOCK_N);
  const auto at = [=](int u) { return lane() + u * WARP; };
  const auto key = [=](int u) { return t0 + at(u); };
  const auto seen = [=](int u) { return key(u) >= p->begin && key(u) < p->end; };
  const auto score = [=](int u) { return x->s[p->pair + key(u)]; };
  const auto error = [=](int u) { return x->e[p->pair + key(u)]; };
  for (int u = 0; u < PER_LANE; ++u)
    if (seen(u)) e[at(u)] = error(u);
  if (fa_ref_sink_left_out(x->c))
    t->alone = fmax(t->alone, widest_alone(x, seen, score, error, row->key_max, t->extra));
  const fa_bound_exponents by = fa_bound_exponents_of(x->c, row->max, false, t->extra);
  bool kept = true;
  const float widest = exponentiate_errors(seen, at, score, e, row->max, &by, &kept);
  if (!kept && widest > 1e12f && fa_bound_may_overflow(x->c) && lane() == 0)
    raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
  if (!kept) t->kept = false;
  t->widest = widest > t->widest ? widest : t->widest;
  FA_ROLLED
  for (int u = 0; u < PER_LANE; ++u) {
    if (!seen(u)) {
      if (key(u) < p->width) clear_weights(x, p->pair + key(u));
      continue;
    }
    const int64_t pair = p->pair + key(u);
    const double s = score(u), raw = s == -INFINITY ? 0 : fa_element_exp(s - row->max),
                 z = factor_of(x, p, key(u), row->kept), P = raw / row->sum;
    const fa_pair_weights weights = fa_element_weights(P, (float)z, e[at(u)], rounded->floor, rounded->per_u);
    if (x->c->p->quantized.amax) fa_bound_largest_add(largest, P, e[at(u)], 0);
    x->s[pair] = raw * z;
    if (x->debug.data) x->e[pair] = (float)raw;
    x->w[pair] = weights.w;
    x->we[pair] = weights.we;
    x->w2[pair] = fa_element_weight_square(weights.w, P, rounded->top, rounded->at_top, rounded->floor);
    *error_sum += weights.pe;
  }
}

FA_DEVICE void fa_judge_weigh(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  fa_judge_row *row = x->row + p.row;
  if (!(row->key_sum > 0)) {
    for (int64_t j = lane(); j < p.width; j += WARP) clear_weights(x, p.pair + j);
    return;
  }
  fa_bound_row t = row->t;
  const fa_bound_rounding rounded = fa_bound_row_rounding(x->c, t.most, row->sum);
  const float *max_v = x->max_v + p.head->key + p.b->j_begin;
  const fa_judge_sum sum = {row->max, row->sum, row->key_max, factor_of_kept(x)};
  double error_sum = 0;
  float largest = 0;
  fa_bound_largest largest_p;
  memset(&largest_p, 0, sizeof largest_p);
  for (int64_t t0 = 0; t0 < p.width; t0 += FA_BLOCK_N)
    weigh_tile(x, &p, t0, &sum, &rounded, &t, &largest_p, &error_sum);
  for (int64_t j = p.begin + lane(); j < p.end; j += WARP)
    if (max_v[j] > largest && is_visited(x, p.b, j)) largest = max_v[j];
  t.max_v = warp_max(largest);
  t.error_sum = warp_sum(error_sum);
  if (x->c->p->quantized.amax) largest_p = joined_largest(&largest_p);
  warp_sync();
  if (lane() != 0) return;
  row->t = t;
  row->largest = largest_p;
}

/* The LSE of a row without keys is its sink's logit, or what the case says. */
FA_DEVICE void settle_empty_row(const fa_judge_job *x, double sink, int64_t lse) {
  const fa_problem *p = x->c->p;
  if (p->sinks.in_lse && sink > -INFINITY) {
    x->want_lse.value[lse] = sink;
    x->want_lse.accum[lse] = fa_bound_sink_alone(x->c->profile, sink);
    return;
  }
  x->want_lse.value[lse] = p->empty_lse == FA_EMPTY_POS_INF   ? INFINITY
                           : p->empty_lse == FA_EMPTY_NEG_INF ? -INFINITY
                                                              : 0;
}

FA_DEVICE void settle_lse(const fa_judge_job *x, const fa_judge_row *row, int64_t lse, double sum_error) {
  const bool alone = fa_ref_sink_left_out(x->c);
  const fa_bound_maxima maxima = {row->key_max, row->key_sum, row->max, row->sum};
  const fa_ref_lse known =
      alone ? fa_ref_lse_of(row->key_max, row->key_sum) : fa_ref_lse_of(row->max, row->sum);
  fa_bound_row own = row->t;
  if (alone) own.widest = own.alone;
  x->want_lse.value[lse] = known.value;
  x->want_lse.rest[lse] = known.rest;
  x->want_lse.accum[lse] = fa_bound_row_lse(x->c, &own, fa_bound_row_error_of_sum(x->c, &maxima, &row->t),
                                            fabs(known.value), sum_error);
  x->want_lse.sum_error[lse] = fa_bound_row_sum(&row->t, sum_error);
}

/* A row of O from its sums, [Dv]. */
FA_DEVICE void settle_o(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_row *row, int64_t want,
                        double sum_error) {
  const int64_t dv = x->c->dv, from = p->row * dv;
  const double unit_v = fa_bound_unit_of(p->head->largest_v);
  const fa_settle_terms terms =
      fa_bound_row_o(x->c, &row->t, unit_v, fmax(row->sum, row->key_sum), false, sum_error);
  const bool squares = fa_bound_row_has_squares(x->c, &row->t);
  bool some = false;
  for (int64_t i = lane(); i < dv; i += WARP) {
    const double value = x->acc.value[from + i] / row->sum;
    const fa_settled s =
        fa_element_settle(&terms, value, x->acc.worst[from + i], squares,
                          squares ? x->acc.squares[from + i] : 0, true, x->acc.errors[from + i]);
    x->want_o.value[want * dv + i] = value;
    x->want_o.quant[want * dv + i] = s.quant;
    x->want_o.noise[want * dv + i] = s.noise;
    x->want_o.accum[want * dv + i] = s.accum;
    some |= value != 0 || s.quant > 0 || s.accum > 0;
  }
  if (x->c->p->quantized.amax && warp_any(some)) raise_flag(&x->found->some_o, 1);
  if (lane() == 0) x->want_o.scale[want] = row->t.max_v;
}

/* What a row adds to the largest P and O of the call. That of O is the subject's. */
FA_DEVICE void raise_amax(const fa_judge_job *x, const fa_judge_row *row, int64_t want, double sum_error) {
  const int64_t dv = x->c->dv;
  double most = 0;
  for (int64_t i = lane(); x->o.data && i < dv; i += WARP)
    most = fmax(most, fabs(load_element(&x->o, want * dv + i)));
  most = warp_max(most);
  if (lane() != 0) return;
  raise_to(&x->found->amax_o, most);
  if (!(row->key_sum > 0)) return;
  const fa_bound_amax p = fa_bound_largest_of_row(x->c, &row->t, &row->largest, sum_error);
  raise_to(&x->found->amax_p, exp(row->key_max - row->max) / row->sum);
  raise_to(&x->found->least_amax_p, p.least);
  raise_to(&x->found->most_amax_p, p.most);
}

/* Outputs are zeros before; a row without keys has an O of 0, exactly. */
FA_DEVICE void fa_judge_settle_forward(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  const fa_judge_row *row = x->row + p.row;
  const int64_t lse = p.b->want_lse + p.row - p.b->first_row;
  const bool empty = !(row->key_sum > 0);
  const double sum_error = empty ? 0 : fa_bound_row_sum_error(x->c, &row->t);
  if (!empty) settle_o(x, &p, row, want_of(x, &p), sum_error);
  if (x->c->p->quantized.amax) raise_amax(x, row, want_of(x, &p), sum_error);
  if (lane() != 0) return;
  if (empty)
    settle_empty_row(x, p.b->sink, lse);
  else
    settle_lse(x, row, lse, sum_error);
}

/* Nothing is wanted of what is behind a sequence's last row. */
FA_DEVICE void fa_judge_pad_lse(const fa_judge_job *x, int64_t at) {
  const fa_ref_call *c = x->c;
  const int64_t sq = c->p->seqlen_q;
  if (at % sq >= c->entry[at / sq / c->heads_q].sq) x->want_lse.value[at] = NAN;
}

#endif
