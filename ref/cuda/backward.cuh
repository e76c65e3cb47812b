/* Backward, a warp a row: delta, P and dS with the terms of their bounds. */
#ifndef FA_REF_CUDA_BACKWARD_CUH
#define FA_REF_CUDA_BACKWARD_CUH

#include "ref/cuda/chain.cuh"
#include "ref/cuda/load.cuh"

/* The LSE that P is made from: the sink is in it, whether or not the returned one holds it. */
FA_DEVICE void take_lse(const fa_judge_job *x, const fa_judge_place *p, int64_t at, fa_judge_row *row) {
  const fa_ref_call *c = x->c;
  fa_ref_lse lse = {load_element(&x->lse, at), 0};
  if (fabs(lse.value) >= FA_COARSE_LSE && fabs(lse.value) < INFINITY)
    raise_flag(&x->found->flags, FA_JUDGE_COARSE_LSE);
  if (fa_ref_sink_left_out(c)) lse = fa_ref_sink_add(lse, p->b->sink);
  row->lse = lse.value;
  row->rest = lse.rest;
  row->extra = c->profile->eps_exp + c->profile->u_lse * fabs(row->lse) +
               fa_bound_sink_joined(c, p->b->sink, row->lse);
}

/* What the row adds to its sink's gradient. */
FA_DEVICE fa_bound_dsink dsink_of(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_row *row,
                                  double unit_ds) {
  const fa_ref_call *c = x->c;
  const fa_ref_lse lse = {row->lse, row->rest};
  const double slack = c->profile->u_lse * fabs(row->lse) + fa_bound_sink_joined(c, p->b->sink, row->lse);
  const fa_bound_sink sink = fa_bound_sink_of_lse(c, p->b->sink, lse, slack);
  return fa_bound_dsink_of_row(&sink, row->delta, row->e_delta * unit_ds);
}

/* delta = sum dO O - dLSE and its error, from the subject's own O and LSE. */
FA_DEVICE void fa_judge_delta(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  const fa_ref_call *c = x->c;
  const int64_t lse = p.b->want_lse + p.row - p.b->first_row;
  const double *d_o = x->do64 + p.row * c->dv;
  const int64_t from = load_of(x, p.b, p.row) * c->dv;
  double sum = 0, size = 0;
  for (int64_t i = lane(); i < c->dv; i += WARP) {
    const double product = d_o[i] * load_element(&x->o, from + i);
    sum += product;
    size += fabs(product);
  }
  sum = warp_sum(sum);
  size = warp_sum(size);
  if (lane() != 0) return;
  fa_judge_row *row = x->row + p.row;
  const double dlse = x->dlse.data ? load_element(&x->dlse, lse) : 0;
  const double unit_v = fa_bound_unit_of(p.head->largest_v);
  row->delta = sum - dlse;
  take_lse(x, &p, lse, row);
  const double error = fa_bound_delta_products(c, size) + FA_F32_UNIT * (fabs(row->delta) + fabs(dlse));
  row->e_delta = fa_bound_e_delta(error, fa_bound_lost_dp(c, unit_of_do(x), unit_v), unit_of_ds(x, unit_v));
  raise_to(&x->found->unit_ds, unit_of_ds(x, unit_v));
  if (c->p->sinks.grad) row->dsink = dsink_of(x, &p, row, unit_of_ds(x, unit_v));
  if (fa_bound_may_overflow(c) && row->e_delta >= FA_GREATEST_WEIGHT)
    raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
  row->least = fa_bound_least_spread_of_ds(c, p.end - p.begin, row->delta);
  row->spread.most = 4 * row->least;
  row->spread.last = -INFINITY;
  row->spread.sum = 0;
  row->spread.n = 0;
  row->terms = 0;
}

/* What all pairs of a row have in common. It is read here once: what lies in memory would be read again for every pair, for a
 * pair's results are written between. */
typedef struct fa_judge_rules {
  fa_pair_limits limits;
  fa_lost_weights lost;
  double lse, rest, delta, extra;
  double kept;   /* factor_of_kept */
  float near;    /* of fa_element_gradient_squares */
  float most_ds; /* what dS may be, if rounds_ds: it is rounded */
  bool rounds_ds, loses, keeps_plain;
} fa_judge_rules;

FA_DEVICE fa_pair_limits limits_of(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_row *row) {
  const fa_ref_call *c = x->c;
  const fa_profile *f = c->profile;
  const double unit_v = fa_bound_unit_of(p->head->largest_v), per_unit = 1 / unit_of_ds(x, unit_v);
  fa_pair_limits out;
  memset(&out, 0, sizeof out);
  if (f->u_p > 0) {
    out.per_u_p = (float)(1 / f->u_p);
    out.floor_p = (float)(f->floor_p / f->u_p / (1 - c->p->dropout.p));
  }
  if (f->u_ds > 0) {
    out.per_u_ds = (float)(1 / f->u_ds);
    out.floor_ds = fa_bound_floor_in_units(c, per_unit);
  }
  out.tiny = fa_bound_tiny_ds(per_unit);
  out.k_d = (float)(fa_bound_dp_error(c) * unit_of_do(x) * unit_v * per_unit * 1.0001);
  out.e_delta = row->e_delta;
  out.u_dp = fa_bound_u_dp(c);
  out.per_unit = per_unit;
  out.scaled = row->delta * per_unit;
  out.size_delta = fabsf((float)out.scaled);
  return out;
}

FA_DEVICE fa_judge_rules rules_of(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_row *row) {
  const fa_profile *f = x->c->profile;
  fa_judge_rules out;
  memset(&out, 0, sizeof out);
  out.limits = limits_of(x, p, row);
  out.loses = f->u_p_in_ds > 0;
  out.lost = (fa_lost_weights){out.limits.per_unit, out.limits.k_d, out.limits.e_delta,
                               out.limits.u_dp,     row->delta,     f->floor_p};
  out.lse = row->lse;
  out.rest = row->rest;
  out.delta = row->delta;
  out.extra = row->extra;
  out.kept = factor_of_kept(x);
  out.near = !(out.kept > 0) && f->truncated_p == 0 ? out.limits.per_u_p : 0;
  out.rounds_ds = f->u_ds > 0;
  out.most_ds = fa_bound_most_ds(x->c, out.limits.per_unit);
  out.keeps_plain = x->plain_ds != NULL;
  return out;
}

FA_DEVICE void clear_pair(const fa_judge_job *x, int64_t pair) {
  x->s[pair] = x->dp[pair] = 0;
  x->e[pair] = x->d[pair] = 0;
  x->w[pair] = x->w2[pair] = x->we[pair] = 0;
  x->g[pair] = x->g2[pair] = x->ge[pair] = 0;
  if (x->plain_ds) x->plain_ds[pair] = x->plain_g[pair] = x->plain_ge[pair] = 0;
}

/* The error of a P of a row about which nothing is known; e: what its exponent alone may do. */
FA_DEVICE float unknown_weight(const fa_judge_job *x, double exponent, float e) {
  if (exponent == -INFINITY) return 0;
  if (fa_bound_may_overflow(x->c) && !(exponent < 20)) raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
  if (e < 1e12f) return FA_GREATEST_WEIGHT;
  const double p = exp(exponent);
  if (p == 0) raise_flag(&x->found->flags, FA_JUDGE_UNKNOWN_P);
  return (float)fmin(FA_GREATEST_WEIGHT / fmin(p, 1.0), 0x1p127);
}

/* A pair of the panels, as it is read. A warp reads one pair ahead of that which it is at, for it has nothing else to do while
 * what it reads is on its way. */
typedef struct fa_judge_panels {
  double s, dp;
  float e, d;
} fa_judge_panels;

FA_DEVICE fa_judge_panels panels_at(const fa_judge_job *x, int64_t pair) {
  return (fa_judge_panels){x->s[pair], x->dp[pair], x->e[pair], x->d[pair]};
}

/* Sums of a row, a lane's part. */
typedef struct fa_judge_part {
  double terms, plain_terms, steepest;
} fa_judge_part;

/* What a pair's dS lacks where P is narrow before dS is formed; 0: it is not. */
FA_DEVICE float lost_weight(const fa_judge_rules *r, double dp, float d, double P, float e, double z,
                            double slope) {
  return r->loses ? fa_element_lost_weight(&r->lost, P, dp, e, d, z, slope) : 0;
}

/* What dBias and gradients of buffers take of a pair: dS and the terms of its bound, before the score chain, and not rounded. */
FA_DEVICE void keep_plain(const fa_judge_job *x, const fa_judge_rules *r, int64_t pair,
                          const fa_judge_panels *in, double P, double ds, float e, double z,
                          fa_judge_part *part) {
  const bool dropped = r->kept > 0;
  fa_pair_limits plain = r->limits;
  plain.floor_ds = plain.per_u_ds = 0;
  const fa_pair_gradient terms = fa_element_gradient(&plain, P, in->dp, e, in->d, dropped, z, false, 1, 0);
  x->plain_ds[pair] = ds;
  x->plain_g[pair] = terms.g;
  x->plain_ge[pair] = terms.ge + lost_weight(r, in->dp, in->d, P, e, z, 1);
  part->plain_terms += terms.part;
}

/* One pair, whose score and its relative error of P are known: P Z and dS in place, the terms of all bounds, and in e and
 * d what is summed by key. */
template <bool CHAIN>
FA_DEVICE void differentiate_pair(const fa_judge_job *x, const fa_judge_place *p, const fa_judge_rules *r,
                                  int64_t j, const fa_judge_panels *in, const fa_judge_score *score,
                                  fa_judge_part *part) {
  const int64_t pair = p->pair + j;
  const bool dropped = r->kept > 0;
  const double P = score->x == -INFINITY ? 0 : fa_element_exp(score->x - r->lse - r->rest),
               z = factor_of(x, p, j, r->kept), dp = in->dp;
  const float d = in->d;
  const fa_pair_gradient terms = fa_element_gradient(&r->limits, P, dp, score->e, d, dropped, z, CHAIN,
                                                     score->slope, score->slope_error);
  const fa_pair_squares squares = fa_element_gradient_squares(P, terms.w, terms.we, terms.g, r->near,
                                                              r->limits.floor_p, r->limits.floor_ds);
  const float lost =
      lost_weight(r, dp, d, P, score->e, z, CHAIN ? (double)score->slope + score->slope_error : 1);
  const float ge = terms.ge + lost;
  const bool overflows = r->rounds_ds && !(terms.g + ge <= r->most_ds);
  const double ds = P * (z * dp - r->delta);
  if (r->keeps_plain) keep_plain(x, r, pair, in, P, ds, score->e, z, part);
  x->s[pair] = P * z;
  x->dp[pair] = CHAIN ? ds * score->factor : ds;
  x->w[pair] = terms.w;
  x->we[pair] = terms.we;
  x->g[pair] = terms.g;
  x->ge[pair] = overflows ? FA_GREATEST_WEIGHT : ge;
  if (overflows) raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
  x->w2[pair] = squares.w2;
  x->g2[pair] = squares.g2;
  x->e[pair] = terms.part;
  x->d[pair] = squares.exact;
  part->terms += terms.part;
  if (CHAIN && P > 0) part->steepest = fmax(part->steepest, (double)score->slope + score->slope_error);
}

/* A tile of a row, from key t0 on. What is known of a pair after the first loop over the tile is small enough to be computed
 * again in the last; only its error depends on the others. */
template <bool CHAIN>
FA_DEVICE void differentiate_tile(const fa_judge_job *x, const fa_judge_place *p, int64_t t0,
                                  const fa_judge_chain *chain, const fa_judge_rules *r, fa_judge_part *part) {
  FA_WARP_ARRAY(float, e, FA_BLOCK_N);
  const auto at = [=](int u) { return lane() + u * WARP; };
  const auto key = [=](int u) { return t0 + at(u); };
  const auto seen = [=](int u) { return key(u) >= p->begin && key(u) < p->end; };
  const auto read = [=](int u) {
    return u < PER_LANE && seen(u) ? panels_at(x, p->pair + key(u)) : (fa_judge_panels){0, 0, 0, 0};
  };
  const auto score = [=](int u, const fa_judge_panels &in) {
    return score_as<CHAIN>(x, chain, in.s, in.e, 0, key(u), p->pair + key(u));
  };
  fa_judge_panels next = read(0);
  FA_ROLLED
  for (int u = 0; u < PER_LANE; ++u) {
    const fa_judge_panels in = next;
    next = read(u + 1);
    if (!seen(u)) continue;
    const fa_judge_score s = score(u, in);
    e[at(u)] = s.e;
    if (s.e == INFINITY && s.x > -INFINITY && fa_bound_may_overflow(x->c))
      raise_flag(&x->found->flags, FA_JUDGE_OVERFLOW);
  }
  const fa_bound_exponents by = fa_bound_exponents_of(x->c, r->lse, true, r->extra);
  bool kept = true;
  exponentiate_errors(
      seen, at, [=](int u) { return score(u, read(u)).x; }, e, r->lse, &by, &kept);
  next = read(0);
  FA_ROLLED
  for (int u = 0; u < PER_LANE; ++u) {
    const fa_judge_panels in = next;
    next = read(u + 1);
    if (!seen(u)) {
      if (key(u) < p->width) clear_pair(x, p->pair + key(u));
      continue;
    }
    fa_judge_score s = score(u, in);
    s.e = kept ? e[at(u)] : unknown_weight(x, s.x - r->lse, e[at(u)]);
    differentiate_pair<CHAIN>(x, p, r, key(u), &in, &s, part);
  }
}

/* A part of a row: keys first .. end - 1 of its block's. */
typedef struct fa_judge_row_at {
  fa_judge_place p;
  int64_t first, end;
} fa_judge_row_at;

/* Items: the first part of all rows, then the second. */
FA_DEVICE fa_judge_row_at part_at(const fa_judge_job *x, int64_t at) {
  const int64_t rows = x->n / x->row_parts, part = at / rows;
  fa_judge_row_at out;
  out.p = place_of(x, at % rows);
  out.first = part * FA_PART;
  out.end = x->row_parts > 1 && (part + 1) * FA_PART < out.p.width ? (part + 1) * FA_PART : out.p.width;
  return out;
}

FA_DEVICE void spread_of(const fa_judge_job *x, const fa_judge_row_at *r, const fa_judge_chain *chain,
                         fa_bound_spread *spread) {
  const fa_judge_place *p = &r->p;
  add_spread(
      p, r->first, r->end,
      [&](int64_t j) {
        return score_of(x, chain, x->s[p->pair + j], x->e[p->pair + j], 0, j, p->pair + j).x;
      },
      spread);
}

/* Before any part of a row is differentiated, which is in place. */
FA_DEVICE void fa_judge_spread(const fa_judge_job *x, int64_t at) {
  const fa_judge_row_at r = part_at(x, at);
  const fa_judge_row *row = x->row + r.p.row;
  const fa_judge_chain chain = chain_of(x, &r.p);
  fa_bound_spread spread = row->spread;
  if (row->least > 0) spread_of(x, &r, &chain, &spread);
  if (lane() != 0) return;
  x->row_part[at].spread = spread.sum;
  x->row_part[at].n = spread.n;
}

FA_DEVICE void fa_judge_differentiate(const fa_judge_job *x, int64_t at) {
  const fa_judge_row_at r = part_at(x, at);
  fa_judge_row *row = x->row + r.p.row;
  const fa_judge_chain chain = chain_of(x, &r.p);
  const fa_judge_rules rules = rules_of(x, &r.p, row);
  fa_bound_spread spread = row->spread;
  fa_judge_part part = {0, 0, 0};
  const bool whole = x->row_parts == 1, with_chain = fa_bound_has_chain(x->c->p);
  if (whole && row->least > 0) spread_of(x, &r, &chain, &spread);
  warp_sync();
  for (int64_t t0 = r.first; t0 < r.end; t0 += FA_BLOCK_N)
    if (with_chain)
      differentiate_tile<true>(x, &r.p, t0, &chain, &rules, &part);
    else
      differentiate_tile<false>(x, &r.p, t0, &chain, &rules, &part);
  part.terms = warp_sum(part.terms);
  part.plain_terms = warp_sum(part.plain_terms);
  part.steepest = warp_max(part.steepest);
  warp_sync();
  if (lane() != 0) return;
  raise_to(&x->found->steepest, part.steepest);
  if (whole) {
    row->spread = spread;
    row->terms = part.terms;
    row->plain_terms = part.plain_terms;
  } else {
    x->row_part[at].terms = part.terms;
    x->row_part[at].plain_terms = part.plain_terms;
  }
}

/* An element kernel: a row's sums from its parts, in their order. */
FA_DEVICE void fa_judge_join_row(const fa_judge_job *x, int64_t at) {
  fa_judge_row *row = x->row + at;
  row->spread.sum = row->terms = row->plain_terms = 0;
  row->spread.n = 0;
  for (int64_t part = 0; part < x->row_parts; ++part) {
    const fa_judge_row_part *of = x->row_part + part * x->n + at;
    row->terms += of->terms;
    row->plain_terms += of->plain_terms;
    row->spread.sum += of->spread;
    row->spread.n += of->n;
  }
}

#endif
