/* Geometry of every sequence, and setup and teardown of a call. */
#include "ref/engine/call.h"

#include "cases/tensors/descale.h"
#include "cases/threads/processors.h"
#include "ref/engine/dropout.h"
#include "ref/engine/topk.h"

#include <stdlib.h>

static void sequence_init(const fa_ref_call *c, int64_t b, fa_ref_sequence *e) {
  const fa_problem *p = c->p;
  int64_t leftpad = p->leftpad_k.n > 0 ? p->leftpad_k.v[b] : 0;
  *e = (fa_ref_sequence){.b = b, .sq = p->seqlen_q, .sk = p->seqlen_k, .row = b};
  if (fa_problem_is_varlen(p)) {
    e->q_first = p->cu_seqlens_q.v[b];
    e->sq = p->cu_seqlens_q.v[b + 1] - e->q_first;
  }
  if (fa_problem_has_packed_keys(p)) {
    e->k_first = p->cu_seqlens_k.v[b];
    e->sk = p->cu_seqlens_k.v[b + 1] - e->k_first;
    e->row = -1;
  }
  if (p->kvcache.present) {
    e->sk = p->kvcache.len.v[b] + p->kvcache.n_new;
    e->row = p->kvcache.batch_idx.n > 0 ? p->kvcache.batch_idx.v[b] : b;
    if (p->kvcache.page_size > 0) e->row = -1;
  } else if (p->seqused_k.n > 0) {
    e->sk = p->seqused_k.v[b];
  }
  e->k_first += leftpad;
  e->sk = e->sk > leftpad ? e->sk - leftpad : 0;
  e->drop_keys = fa_ref_dropout_keys(p, b);
  e->shift = p->mask.align == FA_ALIGN_TOP_LEFT ? 0 : e->sk - e->sq;
}

fa_status fa_ref_call_init(fa_ref_call *c, const fa_problem *p, const fa_tensors *in,
                           const fa_ref_options *opt, fa_wants *out, fa_error *err) {
  *c = (fa_ref_call){.p = p, .in = in, .out = out};
  *out = (fa_wants){0};
  c->profile = opt->profile;
  c->generic = opt->generic;
  c->shapes_alone = opt->shapes_alone;
  c->twist = opt->twist;
  c->sample = opt->sample;
  c->lambda = opt->lambda > 0 ? opt->lambda : 4;
  c->n_threads = opt->n_threads > 0 ? opt->n_threads : fa_processors();
  c->heads_q = p->heads_q;
  c->heads_kv = p->heads_kv;
  c->group = p->heads_q / p->heads_kv;
  c->d = p->head_dim;
  c->dv = p->head_dim_v;
  c->q_descale_most = fa_descale_largest(p, in, FA_T_Q);
  c->v_descale_least = fa_descale_smallest(p, in, FA_T_V);
  c->v_descale_most = fa_descale_largest(p, in, FA_T_V);
  c->entry = calloc((size_t)p->batch + 1, sizeof *c->entry);
  if (!c->entry) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  double work = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    sequence_init(c, b, &c->entry[b]);
    if (c->entry[b].sq > c->max_sq) c->max_sq = c->entry[b].sq;
    if (c->entry[b].sk > c->max_sk) c->max_sk = c->entry[b].sk;
    work += (double)c->entry[b].sq * (double)c->entry[b].sk * (double)(c->heads_q * (c->d + c->dv));
  }
  if (work < 4e6) c->n_threads = 1; /* starting threads would cost more than it saves */
  return fa_ref_topk_init(c, err);
}

/* Of n heads, the one so many after h. */
static int64_t head_after(int64_t h, int64_t by, int64_t n) {
  return ((h + by) % n + n) % n;
}

int64_t fa_ref_kv_head(const fa_ref_call *c, int64_t h) {
  if (!c->twist) return h / c->group;
  if (c->twist->heads_modulo) return h % c->heads_kv;
  return head_after(h / c->group, c->twist->heads_shift, c->heads_kv);
}

int64_t fa_ref_group_member(const fa_ref_call *c, int64_t hk, int64_t place) {
  if (!c->twist) return hk * c->group + place;
  if (c->twist->heads_modulo) return place * c->heads_kv + hk;
  return head_after(hk, -c->twist->heads_shift, c->heads_kv) * c->group + place;
}

void fa_ref_call_free(fa_ref_call *c) {
  fa_ref_topk_free(c);
  free(c->entry);
  free(c->rotated.q);
  free(c->rotated.k);
  free(c->rotated.dq);
  free(c->rotated.dk);
  free(c->rotated.exact_k);
  free(c->rotated.exact_k_err);
  *c = (fa_ref_call){0};
}
