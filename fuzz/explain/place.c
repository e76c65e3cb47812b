/* Elements of O, LSE, dQ, dK and dV by sequence, head, row and column. */
#include "fuzz/explain/failure.h"

bool fa_tensor_is_of_keys(fa_tensor_id id) {
  return id == FA_T_DK || id == FA_T_DV;
}

bool fa_tensor_has_places(fa_tensor_id id) {
  return id == FA_T_O || id == FA_T_LSE || id == FA_T_DQ || fa_tensor_is_of_keys(id);
}

int64_t fa_places_heads(const fa_failure *x, const fa_failed *t) {
  return fa_tensor_is_of_keys(t->id) ? x->place.heads_kv : x->place.heads_q;
}

int64_t fa_places_long(const fa_failure *x, const fa_failed *t, int64_t b) {
  const fa_ref_sequence *e = &x->place.entry[b];
  return fa_tensor_is_of_keys(t->id) ? e->sk : e->sq;
}

/* The sequence that holds row `token` of all rows, which becomes one counted from its first. */
static bool find_sequence(const fa_failure *x, bool keys, int64_t token, fa_place *out) {
  const fa_problem *p = x->p;
  const bool packed = keys ? p->cu_seqlens_k.n > 0 : p->cu_seqlens_q.n > 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    const fa_ref_sequence *e = &x->place.entry[b];
    const int64_t first =
        (keys ? e->k_first : e->q_first) + (packed ? 0 : b * (keys ? p->seqlen_k : p->seqlen_q));
    const int64_t i = token - first;
    if (i < 0 || i >= (keys ? e->sk : e->sq)) continue;
    out->b = b;
    out->i = i;
    return true;
  }
  return false;
}

/* [H, total], or [B, H, S], which may be padded */
static bool lse_place(const fa_failure *x, int64_t e, fa_place *out) {
  const fa_problem *p = x->p;
  const bool packed = p->cu_seqlens_q.n > 0 && !p->lse_padded;
  const int64_t rows = packed ? fa_problem_total_q(p) : p->seqlen_q;
  out->d = 0;
  out->h = e / rows % p->heads_q;
  if (packed) return find_sequence(x, false, e % rows, out);
  out->b = e / rows / p->heads_q;
  out->i = e % rows;
  return out->i < x->place.entry[out->b].sq;
}

bool fa_place_of(const fa_failure *x, const fa_failed *t, int64_t e, fa_place *out) {
  if (t->id == FA_T_LSE) return lse_place(x, e, out);
  const int64_t heads = fa_places_heads(x, t);
  out->d = e % t->width;
  out->h = e / t->width % heads;
  return find_sequence(x, fa_tensor_is_of_keys(t->id), e / t->width / heads, out);
}

int64_t fa_element_at(const fa_failure *x, const fa_failed *t, const fa_place *at) {
  if (at->b < 0 || at->b >= x->p->batch || at->h < 0 || at->h >= fa_places_heads(x, t)) return -1;
  const fa_ref_sequence *e = &x->place.entry[at->b];
  if (at->i < 0 || at->i >= fa_places_long(x, t, at->b) || at->d < 0 || at->d >= t->width) return -1;
  if (t->id == FA_T_LSE) return fa_ref_lse_index(&x->place, e, at->h, at->i);
  if (fa_tensor_is_of_keys(t->id)) return fa_ref_k_index(&x->place, e, at->h, at->i, t->width) + at->d;
  return fa_ref_q_index(&x->place, e, at->h, at->i, t->width) + at->d;
}
