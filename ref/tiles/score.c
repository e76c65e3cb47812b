/* From q.k to the final score: softcap, score_mod, ALiBi, bias, mask. */
#include "ref/tiles/score.h"

#include "ref/engine/geometry.h"
#include "ref/engine/topk.h"

#include <math.h>
#include <string.h>

double fa_ref_alibi_slope(const fa_ref_call *c, int64_t b, int64_t h) {
  const fa_alibi *a = &c->p->alibi;
  if (!a->present) return 0;
  const fa_tensor *t = &c->in->t[FA_T_ALIBI_SLOPES];
  if (t->data) {
    int64_t per_head[FA_MAX_RANK] = {h}, per_sequence[FA_MAX_RANK] = {b, h};
    return fa_tensor_get(t, t->rank == 1 ? per_head : per_sequence);
  }
  return a->slopes[a->n > c->heads_q ? b * c->heads_q + h : h];
}

const char *fa_ref_bias_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i) {
  const fa_tensor *t = &c->in->t[FA_T_BIAS];
  int64_t index[FA_MAX_RANK] = {t->shape[0] == 1 ? 0 : e->b, t->shape[1] == 1 ? 0 : h,
                                t->shape[2] == 1 ? 0 : i, 0};
  return t->data + fa_tensor_offset(t, index);
}

static void softcap_row(double cap, int64_t n, double *s, double *th) {
  for (int64_t j = 0; j < n; ++j) {
    double t = tanh(s[j] / cap);
    s[j] = cap * t;
    if (th) th[j] = t;
  }
}

/* The other form of softcap's tanh: one whose 1 - tanh^2 is the derivative of both steps. */
static void softcap_again(double cap, int64_t n, double *s, double *th) {
  for (int64_t j = 0; j < n; ++j) {
    const double once = s[j] / cap, again = tanh(once);
    s[j] = cap * again;
    if (th) th[j] = sqrt(1 - (1 - once * once) * (1 - again * again));
  }
}

/* Distances as one of the mistaken kernels counts them. */
static void alibi_astray(const fa_ref_twist *t, double slope, int64_t i, int64_t shift, int64_t j0, int64_t n,
                         double *s) {
  const int64_t distance0 = i + (t->alibi_from_top ? 0 : shift) - j0;
  for (int64_t j = 0; j < n; ++j) {
    const double distance = (double)(distance0 - j);
    s[j] -= slope * (t->alibi_signed ? distance : fabs(distance));
  }
}

static void alibi_row(double slope, int64_t distance0, int64_t n, double *s) {
  for (int64_t j = 0; j < n; ++j) s[j] -= slope * fabs((double)(distance0 - j));
}

static void bias_row(const fa_ref_call *c, const fa_ref_rows *r, int64_t i, int64_t j0, int64_t n,
                     double *s) {
  const fa_tensor *t = &c->in->t[FA_T_BIAS];
  const char *at = fa_ref_bias_row(c, r->e, r->h, i) + j0 * t->stride[3] * (int64_t)fa_dtype_size(t->dtype);
  double b[FA_BLOCK_N];
  fa_ref_load_row(t, at, t->stride[3], n, b);
  for (int64_t j = 0; j < n; ++j) s[j] += b[j];
}

static void hide_blocks(const fa_ref_call *c, const fa_ref_rows *r, int64_t i, int64_t j0, int64_t begin,
                        int64_t end, double *s) {
  int64_t width = c->p->block_sparse.kv_block;
  for (int64_t j = begin; j < end;) {
    int64_t next = ((j0 + j) / width + 1) * width - j0;
    if (next > end) next = end;
    if (!fa_ref_block_listed(c, r->e, r->h, i, j0 + j))
      for (int64_t k = j; k < next; ++k) s[k] = -INFINITY;
    j = next;
  }
}

/* Pairs of row i from key j0 on that a custom mask hides. The number of a bit is 64 bits wide. */
static void hide_bits(const fa_ref_call *c, const fa_ref_rows *r, int64_t i, int64_t j0, int64_t begin,
                      int64_t end, double *s) {
  const fa_tensor *bits = &c->in->t[FA_T_MASK_BITS], *indptr = &c->in->t[FA_T_MASK_INDPTR];
  const int64_t index[FA_MAX_RANK] = {r->e->b};
  const unsigned char *bytes = (const unsigned char *)bits->data + (int64_t)fa_tensor_get(indptr, index);
  for (int64_t j = begin; j < end; ++j) {
    const int64_t n = i * r->e->sk + j0 + j;
    if (!fa_ref_mask_bit(bytes, n)) s[j] = -INFINITY;
  }
}

/* Pairs that the row's list does not name are hidden; a key that it names n times has n times the weight. */
static void apply_list(const fa_ref_call *c, const fa_ref_rows *r, int64_t i, int64_t j0, int64_t begin,
                       int64_t end, double *s) {
  const int32_t *key = fa_ref_topk_list(c, r->e, i);
  int32_t times[FA_BLOCK_N] = {0};
  for (int64_t n = 0; n < c->p->topk.k; ++n)
    if (key[n] >= j0 + begin && key[n] < j0 + end) ++times[key[n] - j0];
  for (int64_t j = begin; j < end; ++j)
    if (times[j] == 0)
      s[j] = -INFINITY;
    else if (times[j] > 1)
      s[j] += log(times[j]);
}

/* Applies the score chain to one row's visible span; offset is its place in the tile. */
static void score_row(const fa_ref_mod_row *at, const fa_ref_rows *r, double slope, double *s,
                      double *tanh_out, int64_t offset) {
  const fa_problem *p = at->c->p;
  const fa_ref_twist *twist = at->c->twist;
  uint8_t hidden[FA_BLOCK_N];
  if (at->c->mods) fa_ref_mods_hide(at, hidden);
  if (p->softcap > 0) softcap_row(p->softcap, at->n, s, tanh_out);
  if (p->softcap > 0 && twist && twist->softcap_twice) softcap_again(p->softcap, at->n, s, tanh_out);
  const bool keep = p->score_mod && at->m->before;
  if (p->score_mod) fa_ref_mods_score(at, hidden, s, keep ? at->m->before + offset : NULL);
  if (keep) memcpy(at->m->hidden + offset, hidden, (size_t)at->n);
  if (p->alibi.present && twist)
    alibi_astray(twist, slope, at->i, r->e->sk - r->e->sq, at->j0, at->n, s);
  else if (p->alibi.present)
    alibi_row(slope, at->i + r->e->sk - r->e->sq - at->j0, at->n, s);
  if (p->bias.present) bias_row(at->c, r, at->i, at->j0, at->n, s);
  for (int64_t j = 0; at->c->mods && j < at->n; ++j)
    if (hidden[j]) s[j] = -INFINITY;
}

void fa_ref_score_tile(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n, double *s,
                       int64_t ld, double *tanh_out, fa_ref_mod_scratch *mod) {
  double slope = fa_ref_alibi_slope(c, r->e->b, r->h);
  for (int64_t k = 0; k < r->n; ++k) {
    int64_t begin, end, i = r->row[k];
    double *row = s + k * ld;
    fa_ref_row_span(r, k, j0, n, &begin, &end);
    for (int64_t j = 0; j < begin; ++j) row[j] = -INFINITY;
    for (int64_t j = end; j < n; ++j) row[j] = -INFINITY;
    if (begin == end) continue;
    const fa_ref_mod_row at = {c, mod, r->e, r->h, i, j0 + begin, end - begin};
    score_row(&at, r, slope, row + begin, tanh_out ? tanh_out + k * ld + begin : NULL, k * ld + begin);
    if (c->p->block_sparse.present && !c->mods) hide_blocks(c, r, i, j0, begin, end, row);
    if (c->topk) apply_list(c, r, i, j0, begin, end, row);
    if (c->p->mask_bits.present) hide_bits(c, r, i, j0, begin, end, row);
  }
}
