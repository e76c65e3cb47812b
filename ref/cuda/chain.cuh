/* From q.k to a score, for one pair: softcap, ALiBi, bias and what a mask of bits hides, and how far off a kernel's score may
 * be. */
#ifndef FA_REF_CUDA_CHAIN_CUH
#define FA_REF_CUDA_CHAIN_CUH

#include "ref/cuda/load.cuh"

/* What all pairs of a row have in common. */
typedef struct fa_judge_chain {
  double k, steps, tiny; /* of the product's error */
  double slope;          /* ALiBi's; present: with_alibi */
  int64_t distance;      /* of the block's first key */
  float turned;          /* factor of what rotary embedding may flip */
  double softcap;        /* 0: there is none */
  /* of the row's pair with the block's first key: elements of the bias and the lists; bits of masks */
  int64_t bias, times, bit, hidden;
  bool with_alibi, moves; /* moves: anything is added to a score, or hides it */
  bool listed;            /* scores have in them what their row's list makes of them */
} fa_judge_chain;

FA_DEVICE fa_judge_chain chain_of(const fa_judge_job *x, const fa_judge_place *p) {
  const fa_ref_call *c = x->c;
  const double unit_q = unit_of_q(x), unit_k = fa_bound_unit_of(p->head->largest_k);
  fa_judge_chain out;
  out.k = fabs(c->p->scale) * unit_q * unit_k *
          (fa_bound_gamma(c, FA_PRODUCT_QK, c->d) + c->profile->operand[FA_PRODUCT_QK]) * 1.0001;
  if (fa_bound_walks_scores(c)) out.k = 1; /* errors are there as they are */
  out.steps = fa_bound_score_steps(c);
  out.tiny = fa_bound_lost_scores(c, unit_q, unit_k);
  out.slope = p->b->slope;
  out.distance = p->i + p->e->sk - p->e->sq - p->b->j_begin;
  out.bias = fa_ref_bias_index(c->p, p->head->b, p->b->h, p->i) * c->p->seqlen_k + p->b->j_begin;
  out.turned = (float)(fabs(c->p->scale) * unit_q * unit_k * 1.0001);
  out.hidden =
      ((p->head->b * c->heads_q + p->b->h) * c->p->seqlen_q + p->i) * x->hidden_width + p->b->j_begin;
  out.times = want_of(x, p) / c->heads_q * x->times_width + p->b->j_begin;
  out.bit = 8 * p->head->bytes + p->i * p->e->sk + p->b->j_begin;
  out.with_alibi = c->p->alibi.present;
  out.softcap = c->p->softcap > 0 ? c->p->softcap : 0;
  out.moves = out.with_alibi || x->bias.data || x->times.data || x->hidden.data || x->bits.data;
  out.listed = x->kept_scores;
  return out;
}

/* What the scores of queries and keys of 8 bits are off by where their products are added in a narrow accumulator: a lane a key. */
FA_DEVICE void fa_judge_walk(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  const fa_ref_call *c = x->c;
  const int64_t d = c->d, key = p.head->key + p.b->j_begin, from = p.head->load + p.b->j_begin * x->k_step;
  const float *q_descale = (const float *)x->q_descale.data, *k_descale = (const float *)x->k_descale.data;
  const double by_q = c->p->scale * q_descale[load_of(x, p.b, at)];
  const fa_bound_stored q = {x->stored_q + at * d, x->exponent_q + at * d};
  for (int64_t j = p.begin + lane(); j < p.end; j += WARP) {
    const fa_bound_stored k = {x->stored_k + (key + j) * d, x->exponent_k + (key + j) * d};
    const double by = fabs(by_q * k_descale[from + j * x->k_step]);
    x->e[p.pair + j] = fa_bound_narrow_score(q, k, d, by);
  }
}

/* One pair's score and its error; the chain's derivative so far, and for bounds its magnitude and that one's error. */
typedef struct fa_judge_score {
  double x, factor;
  float e, slope, slope_error;
} fa_judge_score;

/* A score with what its row's list makes of it. */
FA_DEVICE double listed_score(const fa_judge_job *x, const fa_judge_chain *t, double s, int64_t j) {
  const double times = load_element(&x->times, t->times + j);
  return times == 0 ? -INFINITY : times > 1 ? s + log(times) : s;
}

/* By block lists or mask_mod. */
FA_DEVICE bool is_hidden(const fa_judge_job *x, const fa_judge_chain *t, int64_t j) {
  return x->hidden.data && fa_ref_mask_bit((const unsigned char *)x->hidden.data, t->hidden + j);
}

/* What is added to a score, and what hides it. All errors are of the final one. */
FA_DEVICE void move_score(const fa_judge_job *x, const fa_judge_chain *t, int64_t j, fa_judge_score *s) {
  if (!t->moves) return;
  const double distance = (double)(t->distance - j),
               bias = x->bias.data ? load_element(&x->bias, t->bias + j) : 0;
  if (t->with_alibi) s->x -= t->slope * fabs(distance);
  if (x->bias.data) s->x += bias;
  if (x->times.data) s->x = listed_score(x, t, s->x, j);
  if (t->with_alibi) s->e += fa_bound_alibi_error(t->slope, distance, s->x);
  if (x->bias.data) s->e = fa_bound_bias_error(s->e, bias, s->x);
  if (is_hidden(x, t, j)) s->x = -INFINITY;
  if (x->bits.data && !fa_ref_mask_bit((const unsigned char *)x->bits.data, t->bit + j)) s->x = -INFINITY;
}

/* The steps before score_mod. CAP: there may be a softcap. */
template <bool CAP>
FA_DEVICE fa_judge_score begin_score(const fa_judge_job *x, const fa_judge_chain *t, double s, float e,
                                     float flips, int64_t j) {
  fa_judge_score out;
  const double size = t->listed ? listed_score(x, t, s, j) : s;
  out.e = fa_element_product_error(e, size, t->k, t->steps, t->tiny);
  if (!(t->k > 0) && out.e != out.e) out.e = INFINITY; /* an infinite product times a scale of 0 is NaN */
  if (flips > 0) out.e += t->turned * flips; /* whose unit may be no float */
  out.x = s;
  out.factor = 1;
  out.slope = 1;
  out.slope_error = 0;
  if (CAP && t->softcap > 0) {
    const double th = tanh(s / t->softcap);
    out.x = t->softcap * th;
    out.factor = (1 - th) * (1 + th);
    const fa_bound_cap cap = fa_bound_softcap(x->c, th, out.e);
    out.e = cap.e;
    out.slope = cap.slope;
    out.slope_error = cap.error;
  }
  return out;
}

/* What score_mod left of a pair of the panels. */
FA_DEVICE fa_judge_score modified_score(const fa_judge_job *x, double s, float e, int64_t pair) {
  fa_judge_score out;
  out.x = s;
  out.e = e;
  out.factor = out.slope = 1;
  out.slope_error = 0;
  if (!x->mod.slope) return out;
  out.factor = x->mod.slope[pair];
  out.slope = x->mod.cap[pair];
  out.slope_error = x->mod.cap_err[pair];
  return out;
}

/* s: scale * q.k; e: |q| |k| in units; flips: what rotary embedding may flip, in units; j: from the block's first key on; pair:
 * of the panels. With a score_mod s and e are what it made of them. CHAIN: there may be one, or a softcap. */
template <bool CHAIN>
FA_DEVICE fa_judge_score score_as(const fa_judge_job *x, const fa_judge_chain *t, double s, float e,
                                  float flips, int64_t j, int64_t pair) {
  fa_judge_score out;
  if (CHAIN && x->mod.program)
    out = modified_score(x, s, e, pair);
  else
    out = begin_score<CHAIN>(x, t, s, e, flips, j);
  move_score(x, t, j, &out);
  return out;
}

FA_DEVICE fa_judge_score score_of(const fa_judge_job *x, const fa_judge_chain *t, double s, float e,
                                  float flips, int64_t j, int64_t pair) {
  return score_as<true>(x, t, s, e, flips, j, pair);
}

/* Dropout's factor of a pair. kept: of one that is kept, by factor_of_kept; 0: there is no dropout. */
FA_DEVICE double factor_of_kept(const fa_judge_job *x) {
  const double p = x->c->p->dropout.p;
  return p > 0 ? 1 / (1 - p) : 0;
}
FA_DEVICE double factor_of(const fa_judge_job *x, const fa_judge_place *p, int64_t j, double kept) {
  if (!(kept > 0)) return 1;
  return fa_ref_keep(x->c->p, 0, p->e->drop_keys, p->head->b, p->b->h, p->i, p->b->j_begin + j) ? kept : 0;
}

/* How far a row's visible logits are apart, each from the one before it: fa_bound_spread, of keys first .. end - 1. score(j) is
 * that of key j. */
template <typename F>
FA_DEVICE void add_spread(const fa_judge_place *p, int64_t first, int64_t end, const F &score,
                          fa_bound_spread *s) {
  double sum = 0, n = 0;
  if (first <= p->begin) first = p->begin + 1;
  if (end > p->end) end = p->end;
  double last = first < end ? score(first - 1) : -INFINITY;
  FA_ROLLED
  for (int64_t j0 = first; j0 < end; j0 += WARP) {
    const int64_t j = j0 + lane();
    const double at = j < end ? score(j) : -INFINITY;
    double before = warp_before(at, last);
    last = warp_last(at);
    if (at == -INFINITY) continue; /* it has no weight */
    for (int64_t i = j - 2; before == -INFINITY && i >= p->begin; --i) before = score(i);
    if (before == -INFINITY) continue;
    const double apart = fabs(at - before);
    sum += apart < s->most ? apart : s->most;
    ++n;
  }
  s->sum = warp_sum(sum);
  s->n = (int64_t)warp_sum(n);
}

/* A tile's pairs of a row: FA_BLOCK_N keys from the block's first on, as the CPU walks over them. */
enum { PER_LANE = FA_BLOCK_N / WARP };

/* Absolute errors of scores, in e, become relative errors of exp(x - shift). seen(u): whether the lane has such a pair; at(u):
 * its place in e; score(u): its x. Returns the largest; *kept becomes false if an exponential's magnitude is unknown. */
template <typename F, typename G, typename H>
FA_DEVICE float exponentiate_errors(const F &seen, const G &at, const H &score, float *e, double shift,
                                    const fa_bound_exponents *by, bool *kept) {
  float most = 0;
  for (int u = 0; u < PER_LANE; ++u) {
    if (!seen(u)) continue;
    const float off = fa_element_logit_error(e[at(u)], score(u), shift, by->a, by->s, by->k);
    e[at(u)] = off;
    most = off > most ? off : most;
  }
  most = warp_max(most);
  const bool small = most <= 0.5f;
  bool known = true;
  most = 0;
  FA_ROLLED
  for (int u = 0; u < PER_LANE; ++u) {
    if (!seen(u)) continue;
    float off = e[at(u)];
    if (small)
      off += off * off;
    else if (score(u) != -INFINITY)
      off = fa_bound_large_exponent(off, score(u), shift, &known);
    e[at(u)] = off;
    most = off > most ? off : most;
  }
  if (warp_any(!known)) *kept = false;
  return warp_max(most);
}

#endif
