/* Bounds of the gradients from their sums, a warp a row of dQ, or a key of dK and dV. */
#ifndef FA_REF_CUDA_SETTLE_CUH
#define FA_REF_CUDA_SETTLE_CUH

#include "ref/cuda/find.cuh"

/* One row's sums, [width]. squares NULL: only the worst case holds. */
typedef struct fa_judge_row_sums {
  const double *value;
  const float *worst, *squares, *errors;
} fa_judge_row_sums;

FA_DEVICE void settle_gradient(const fa_judge_job *x, const fa_bound_sums *t, const fa_judge_row_sums *from,
                               int64_t width, const fa_judge_want *w, int64_t row) {
  const fa_settle_terms terms = fa_bound_settle_terms(x->c, t);
  for (int64_t i = lane(); i < width; i += WARP) {
    const bool squares = from->squares != NULL;
    const fa_settled s = fa_element_settle(&terms, from->value[i], from->worst[i], squares,
                                           squares ? from->squares[i] : 0, terms.exact == 0, from->errors[i]);
    const bool unknown = !(terms.unit > 0) && s.accum != s.accum; /* an infinite error times a scale of 0 */
    w->value[row * width + i] = from->value[i];
    w->quant[row * width + i] = s.quant;
    w->noise[row * width + i] = s.noise;
    w->accum[row * width + i] = unknown ? INFINITY : s.accum;
  }
}

FA_DEVICE void fa_judge_settle_dq(const fa_judge_job *x, int64_t at) {
  const fa_judge_place p = place_of(x, at);
  const fa_judge_row *row = x->row + p.row;
  const fa_ref_call *c = x->c;
  const fa_profile *f = c->profile;
  const int64_t n = p.end - p.begin, from = p.row * c->d, want = want_of(x, &p);
  const double unit_k = fa_bound_unit_of(p.head->largest_k),
               unit_ds = unit_of_ds(x, fa_bound_unit_of(p.head->largest_v));
  const double scale = fabs(c->p->scale);
  if (n == 0 || !is_any_visited(x, p.b)) return;
  float most_k = 0;
  for (int64_t j = lane(); j < p.width; j += WARP) {
    const float k = x->max_k[p.head->key + p.b->j_begin + j];
    most_k = k > most_k ? k : most_k;
  }
  most_k = warp_max(most_k);
  fa_bound_sums t = fa_bound_sums_of(c, FA_PRODUCT_DQ, n, scale * unit_ds * unit_k, f->u_ds, f->u_p_in_ds,
                                     scale * fa_bound_greatest_ds(c, unit_ds));
  const int64_t tile = f->block_n > 0 ? f->block_n : 1;
  t.tiny += scale * row->terms * unit_ds * f->operand_step[FA_PRODUCT_DQ] * unit_k;
  t.tiny += (double)(n / tile + 3) * scale * f->floor_dq;
  t.by_value += f->truncated_ds;
  const bool alike = row->least > 0 && fa_bound_is_alike(&row->spread, row->least);
  const fa_judge_row_sums sums = {x->acc.value + from, x->acc.worst + from,
                                  c->generic && !alike ? x->acc.squares + from : NULL, x->acc.errors + from};
  settle_gradient(x, &t, &sums, c->d, &x->want_dq, want);
  if (lane() == 0) x->want_dq.scale[want] = (float)(row->terms * unit_ds * most_k * scale);
}

FA_DEVICE void settle_dk(const fa_judge_job *x, const fa_judge_head *head, int64_t at, int64_t want) {
  const fa_ref_call *c = x->c;
  const fa_profile *f = c->profile;
  const int64_t n = head->sq * c->group, d = c->d;
  const double unit_ds = unit_of_ds(x, fa_bound_unit_of(head->largest_v)), unit_q = unit_of_q(x),
               scale = fabs(c->p->scale);
  const double greatest = fa_bound_greatest_ds(c, unit_ds);
  fa_bound_sums t = fa_bound_sums_of(c, FA_PRODUCT_DK, n, scale * unit_ds * unit_q, f->u_ds, f->u_p_in_ds,
                                     scale * greatest);
  t.by_value = f->truncated_ds;
  t.tiny += (double)n * scale * greatest * f->operand_step[FA_PRODUCT_DK] * unit_q;
  fa_bound_add_in_memory(c, head->sq, c->p->scale, &t);
  const fa_judge_row_sums sums = {x->dk.value + at * d, x->dk.worst + at * d,
                                  c->generic ? x->dk.squares + at * d : NULL, x->dk.errors + at * d};
  settle_gradient(x, &t, &sums, d, &x->want_dk, want);
  if (lane() == 0) x->want_dk.scale[want] = (float)(x->dk_terms[at] * (scale * unit_ds * unit_q));
}

FA_DEVICE void settle_dv(const fa_judge_job *x, const fa_judge_head *head, int64_t at, int64_t want) {
  const fa_ref_call *c = x->c;
  const fa_profile *f = c->profile;
  const bool dropout = c->p->dropout.p > 0;
  const int64_t n = head->sq * c->group, dv = c->dv;
  const double unit_do = unit_of_do(x), kept = 1 - c->p->dropout.p;
  fa_bound_sums t =
      fa_bound_sums_of(c, FA_PRODUCT_DV, n, unit_do, f->u_p, dropout ? f->u_dropout : 0, 1 / kept);
  if (dropout) t.gamma += f->u_dropout;
  t.by_value = f->truncated_p;
  t.tiny += (double)n / kept * f->operand_step[FA_PRODUCT_DV] * unit_do;
  t.exact = x->dv_exact[at]; /* times squares of dO / unit, at most 1 */
  fa_bound_add_in_memory(c, head->sq, 1 / kept, &t);
  const fa_judge_row_sums sums = {x->dv.value + at * dv, x->dv.worst + at * dv,
                                  c->generic ? x->dv.squares + at * dv : NULL, x->dv.errors + at * dv};
  settle_gradient(x, &t, &sums, dv, &x->want_dv, want);
  float most = 0;
  for (int64_t i = lane(); i < dv; i += WARP) most = sums.worst[i] > most ? sums.worst[i] : most;
  most = warp_max(most);
  if (lane() == 0) x->want_dv.scale[want] = (float)(most * unit_do);
}

/* Adds the sums of a group's other heads to its first one's, a key of `n` keys each; parts: of magnitudes. */
FA_DEVICE void join_sums(const fa_judge_sums_of *sums, float *parts, int64_t at, int64_t n, int64_t members,
                         int64_t width) {
  for (int64_t i = at * width + lane(); i < (at + 1) * width; i += WARP) {
    parts[i] = (float)fabs(sums->value[i]);
    for (int64_t m = 1; m < members; ++m) {
      const int64_t from = i + m * n * width;
      parts[i] += (float)fabs(sums->value[from]);
      sums->value[i] += sums->value[from];
      sums->worst[i] += sums->worst[from];
      sums->squares[i] += sums->squares[from];
      sums->errors[i] += sums->errors[from];
    }
  }
}

/* After the last block of a turn, where heads have sums of their own. */
FA_DEVICE void fa_judge_join_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  if (head->members == 0) return;
  join_sums(&x->dk, x->parts_dk, at, head->sk, head->members, x->c->d);
  join_sums(&x->dv, x->parts_dv, at, head->sk, head->members, x->c->dv);
  for (int64_t m = 1; lane() == 0 && m < head->members; ++m) {
    x->dk_terms[at] += x->dk_terms[at + m * head->sk];
    x->dv_exact[at] += x->dv_exact[at + m * head->sk];
  }
}

FA_DEVICE void add_parts(const fa_judge_job *x, const float *parts, int64_t at, int64_t width, int64_t want,
                         const fa_judge_want *w) {
  for (int64_t i = lane(); x->parts_dk && i < width; i += WARP)
    w->accum[want * width + i] =
        fa_bound_add_parts(x->c, &x->io, w->accum[want * width + i], parts[at * width + i]);
}

/* After the last block of its head. */
FA_DEVICE void fa_judge_settle_key(const fa_judge_job *x, int64_t at) {
  const fa_judge_head *head = head_of_key(x, at);
  const int64_t want = head->want + (at - head->key) * x->c->heads_kv;
  if (head->sq == 0 || head->members == 0) return;
  settle_dk(x, head, at, want);
  settle_dv(x, head, at, want);
  add_parts(x, x->parts_dk, at, x->c->d, want, &x->want_dk);
  add_parts(x, x->parts_dv, at, x->c->dv, want, &x->want_dv);
}

/* After all turns: the elements of dQ, and behind them those of dK. */
FA_DEVICE void fa_judge_steepen(const fa_judge_job *x, int64_t at) {
  const fa_ref_call *c = x->c;
  const bool of_key = at >= x->q.n;
  const fa_judge_want *w = of_key ? &x->want_dk : &x->want_dq;
  const int64_t e = of_key ? at - x->q.n : at, terms = of_key ? c->max_sq * c->group : c->max_sk;
  const double steep = fa_bound_steep(c, x->found->unit_ds, x->found->steepest);
  if (steep > 0) w->accum[e] = fa_bound_add_steep(w->value[e], w->accum[e], (double)terms, steep);
}

#endif
