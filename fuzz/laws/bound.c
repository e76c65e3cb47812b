/* How far two correct runs may differ: the reference's own end-to-end bounds if it is fast enough, otherwise
 * a-priori bounds from magnitudes alone (docs/reference/laws.md). */
#include "fuzz/laws/parts.h"
#include "ref/reference.h"

#include <math.h>
#include <stdlib.h>

#define REFERENCE_PAIRS 2e8 /* pairs times head dims that take the reference about a second */
#define U 0x1p-24

static double pairs_of(const fa_problem *p) {
  double pairs = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    double q = (double)p->seqlen_q, k = (double)p->seqlen_k;
    if (p->cu_seqlens_q.n) q = p->cu_seqlens_q.v[b + 1] - p->cu_seqlens_q.v[b];
    if (p->cu_seqlens_k.n) k = p->cu_seqlens_k.v[b + 1] - p->cu_seqlens_k.v[b];
    if (p->family == FA_KVCACHE) k = (double)(p->kvcache.len.v[b] + p->kvcache.n_new);
    pairs += q * k;
  }
  return pairs * (double)p->heads_q * (double)(p->head_dim + p->head_dim_v) * (p->backward ? 3 : 1);
}

static fa_status from_reference(fa_law_work *w, fa_law_side *s, fa_error *err) {
  const fa_ref_options options = {
      .n_threads = w->config->n_threads, .profile = &s->profile, .generic = w->generic};
  fa_wants gradients = {0};
  fa_status status = fa_ref_forward(&s->p, &s->in, &options, &s->want, err);
  if (status == FA_OK && (w->passes & FA_PASS_BACKWARD))
    status = fa_ref_backward(&s->p, &s->in, NULL, NULL, &s->want, &options, &gradients, err);
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (gradients.t[id].n) {
      s->want.t[id] = gradients.t[id];
      gradients.t[id] = (fa_want){0};
    }
  fa_wants_free(&gradients);
  if (status == FA_OK) s->bounded = 1;
  return status;
}

/* ---- a priori ---- */

/* The largest 2-norm of rows, and the largest magnitude in them. */
typedef struct sizes {
  double norm, most;
} sizes;

static void add_row(sizes *x, const fa_tensor *t, int64_t *index) {
  double sum = 0;
  for (int64_t c = 0; c < t->shape[t->rank - 1]; ++c) {
    index[t->rank - 1] = c;
    const double value = fabs(fa_tensor_get(t, index));
    sum += value * value;
    x->most = fmax(x->most, value);
  }
  x->norm = fmax(x->norm, sqrt(sum));
}

/* Of one head of one sequence. */
static sizes magnitudes(const fa_tensor *t, int64_t b, int64_t first, int64_t n, int64_t h) {
  sizes x = {0};
  for (int64_t i = first; i < first + n; ++i) {
    int64_t index[FA_MAX_RANK] = {b, i, h, 0};
    if (t->rank == 3) index[0] = i, index[1] = h;
    add_row(&x, t, index);
  }
  return x;
}

/* The same for the keys or values in a cache and those appended to it. */
static sizes cached(const fa_law_side *s, fa_tensor_id id, fa_tensor_id new_id, int64_t b, int64_t h) {
  sizes x = magnitudes(&s->in.t[new_id], b, 0, s->p.kvcache.n_new, h);
  for (int64_t slot = 0; slot < s->p.kvcache.len.v[b]; ++slot) {
    int64_t index[FA_MAX_RANK];
    fa_law_slot_at(s, b, slot, index);
    index[2] = h;
    add_row(&x, &s->in.t[id], index);
  }
  return x;
}

static double largest_bias(const fa_tensor *t) {
  double most = 0;
  int64_t index[FA_MAX_RANK], n = fa_tensor_count(t);
  for (int64_t e = 0; e < n; ++e) {
    fa_tensor_unravel(t, e, index);
    const double x = fabs(fa_tensor_get(t, index));
    if (isfinite(x)) most = fmax(most, x);
  }
  return most;
}

/* A sink's logit is one more of the row's. */
static double size_of_sink(const fa_tensor *t, int64_t h) {
  const double x = t->data ? fabs(fa_tensor_get(t, &h)) : 0;
  return isfinite(x) ? x : 0;
}

static double gamma_of(const fa_law_work *w, const fa_profile *f, int64_t n) {
  if (f->mma_block > 0)
    return (ceil((double)n / f->mma_block) + 1) * ((f->mma_block + 1) * ldexp(1, -f->mma_extra_bits) + 1) *
           0x1p-23;
  const double worst = (double)n;
  return (w->generic ? fmin(worst, 4 * sqrt(worst)) : worst) * U;
}

/* The formulas of docs/reference/laws.md, "A priori". q_norm, k_norm: longest rows; v: the largest element. */
static void bound_of_head(const fa_law_work *w, const fa_law_side *s, int64_t n, double q_norm, double k_norm,
                          double v, double added, double *bound_o, double *bound_lse) {
  const fa_problem *p = &s->p;
  const fa_profile *f = &s->profile;
  const double product = fabs(p->scale) * q_norm * k_norm, m = product + added, terms = (double)n;
  const double tiles = ceil(terms / f->block_n) + 1, rounds = f->max_splits > 1 ? f->max_splits : 0;
  const double changes = w->generic && added == 0 ? fmin(tiles, 16) : tiles;
  double e_x = product * (gamma_of(w, f, p->head_dim) + f->u_operand) + 10 * U * m;
  if (p->softcap > 0) e_x += p->softcap * (f->eps_tanh + 2 * U);
  const double eta = e_x + 14 * U * m + (1 + changes) * f->eps_exp +
                     rounds * (2 * f->eps_exp + f->eps_log + 4 * U * (m + log(terms + 1)) + 4 * U * m);
  const double eps = eta + eta * eta, sigma = (w->generic ? fmin(terms, 4 * sqrt(terms)) : terms) * U;
  const double r = eps + sigma, lse = m + log(terms + 1);
  *bound_o = *bound_lse = INFINITY;
  if (!(eta <= 0.5) || !(r < 0.5)) return;
  *bound_lse = r * (1 + r) + sigma + (1 + rounds) * (f->eps_log + 2 * U * lse + f->eps_exp) +
               3 * U * log(terms + 1) + U * m + fa_half_ulp(FA_F32, lse);
  const double quant = (f->u_p + f->u_dropout + terms * f->floor_p) * v;
  const double drop = p->dropout.p > 0 ? 1 / (1 - p->dropout.p) : 1;
  const double accum =
      (2 * r / (1 - r) + gamma_of(w, f, n) + (2 * changes + 2 * rounds + 8) * U + f->u_operand) * v;
  *bound_o = (quant + accum) * drop + fa_half_ulp(p->dtype, (v + quant + accum) * drop);
}

static fa_status a_priori(fa_law_work *w, fa_law_side *s, fa_error *err) {
  const fa_problem *p = &s->p;
  const size_t n = (size_t)(p->batch * p->heads_q);
  s->bound_o = calloc(n + 1, sizeof *s->bound_o);
  s->bound_lse = calloc(n + 1, sizeof *s->bound_lse);
  if (!s->bound_o || !s->bound_lse) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  s->bounded = 2;
  const bool cache = p->family == FA_KVCACHE;
  const double bias = p->bias.present ? largest_bias(&s->in.t[FA_T_BIAS]) : 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    int64_t q0 = 0, k0 = 0, nq = p->seqlen_q, nk = p->seqlen_k;
    if (p->cu_seqlens_q.n) q0 = p->cu_seqlens_q.v[b], nq = p->cu_seqlens_q.v[b + 1] - q0;
    if (p->cu_seqlens_k.n) k0 = p->cu_seqlens_k.v[b], nk = p->cu_seqlens_k.v[b + 1] - k0;
    if (p->seqused_k.n) nk = p->seqused_k.v[b];
    sizes k = {0}, v = {0};
    if (cache) nk = p->kvcache.len.v[b] + p->kvcache.n_new;
    for (int64_t h = 0; h < p->heads_q; ++h) {
      const int64_t hk = h / (p->heads_q / p->heads_kv), at = b * p->heads_q + h;
      if (cache && p->kvcache.rotary_dim > 0) { /* rounded once more on the way */
        s->bound_o[at] = s->bound_lse[at] = INFINITY;
        continue;
      }
      const sizes q = magnitudes(&s->in.t[FA_T_Q], b, q0, nq, h);
      if (h % (p->heads_q / p->heads_kv) == 0) { /* the group's first */
        k = cache ? cached(s, FA_T_K, FA_T_K_NEW, b, hk) : magnitudes(&s->in.t[FA_T_K], b, k0, nk, hk);
        v = cache ? cached(s, FA_T_V, FA_T_V_NEW, b, hk) : magnitudes(&s->in.t[FA_T_V], b, k0, nk, hk);
      }
      double slope = 0;
      if (p->alibi.present)
        slope = fabs(p->alibi.slopes[p->alibi.n == p->heads_q ? h : at]) * (double)(nq + nk);
      bound_of_head(w, s, nk, q.norm, k.norm, v.most, bias + slope + size_of_sink(&s->in.t[FA_T_SINKS], h),
                    &s->bound_o[at], &s->bound_lse[at]);
    }
  }
  return FA_OK;
}

fa_status fa_law_bounds(fa_law_work *w, fa_law_side *s, fa_error *err) {
  if (s->bounded) return FA_OK;
  const bool cheap = s->p.family == FA_MERGE || s->p.topk.present || pairs_of(&s->p) <= REFERENCE_PAIRS;
  return cheap ? from_reference(w, s, err) : a_priori(w, s, err);
}

/* Sequence of a token in a variable-length call. */
static int64_t sequence_of(const fa_problem *p, int64_t token) {
  int64_t b = 0;
  while (b + 1 < p->batch && p->cu_seqlens_q.v[b + 1] <= token) ++b;
  return b;
}

double fa_law_bound_at(const fa_law_side *s, fa_tensor_id id, const int64_t *index, int64_t position,
                       bool *has) {
  const bool lse = id == FA_T_LSE;
  *has = s->bounded == 1 ? s->want.t[id].n > 0 || position < 0 : lse || id == FA_T_O;
  if (position < 0 || !*has) return INFINITY;
  if (s->bounded == 1) return fa_want_bound(&s->want.t[id], position);
  const bool varlen = fa_problem_is_varlen(&s->p);
  int64_t b = index[0], h = lse ? index[1] : index[2];
  if (varlen) b = sequence_of(&s->p, lse ? index[1] : index[0]), h = lse ? index[0] : index[1];
  return (lse ? s->bound_lse : s->bound_o)[b * s->p.heads_q + h];
}
