/* All gradients of a call, or those of a sample.
 *
 * A work item is a run of query blocks of one key/value head's group of query heads. It sums dK and dV
 * privately, and the sums are added to the outputs in item order. How the work is divided depends on the
 * problem alone, so the result does not depend on the number of threads. */
#include "cases/threads/parallel.h"
#include "ref/attention/backward.h"
#include "ref/attention/coarse.h"
#include "ref/attention/outputs.h"
#include "ref/attention/team.h"
#include "ref/merge/passes.h"
#include "ref/reference.h"

#include "ref/mods/tile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Merging an item's private sums costs a pass over the head's keys, which pays off from a thousand rows
 * on. */
enum { ITEMS_WANTED = 128, BLOCKS_PER_ITEM = 4 };

static int64_t n_blocks(int64_t n) {
  return (n + FA_BLOCK_M - 1) / FA_BLOCK_M;
}

/* Number of query blocks of a sequence's group, and of the items that they form. */
static int64_t group_blocks(const fa_ref_call *c, const fa_ref_sequence *e) {
  return c->group * n_blocks(e->sq);
}

static int64_t items_per_group(const fa_ref_call *c, const fa_ref_sequence *e) {
  const fa_ref_coarse *coarse = fa_ref_coarse_of(c);
  if (fa_bound_heads_apart(c)) return e->sq > 0 ? c->group : 0; /* the bounds need their parts */
  if (coarse && coarse->tile > 0) return e->sq > 0 ? 1 : 0;     /* roundings depend on the order */
  int64_t groups = c->p->batch * c->heads_kv, blocks = group_blocks(c, e);
  int64_t wanted = (ITEMS_WANTED + groups - 1) / groups;
  int64_t most = (blocks + BLOCKS_PER_ITEM - 1) / BLOCKS_PER_ITEM;
  return most < wanted ? most : wanted;
}

/* Range of keys that an item has touched so far and that must be merged. */
typedef struct fa_touched {
  int64_t begin, end;
} fa_touched;

/* Zeroes the private sums of keys begin .. end - 1. */
static void clear(const fa_ref_call *c, fa_ref_scratch *w, fa_bound_scratch *b, int64_t begin, int64_t end) {
  memset(w->dk + begin * c->d, 0, (size_t)((end - begin) * c->d) * sizeof *w->dk);
  memset(w->dv + begin * c->dv, 0, (size_t)((end - begin) * c->dv) * sizeof *w->dv);
  if (b) fa_bound_backward_touch(c, b, begin, end);
}

/* Grows the touched range and zeroes the new part. */
static void touch(const fa_ref_call *c, fa_ref_scratch *w, fa_bound_scratch *b, fa_touched *t, int64_t begin,
                  int64_t end) {
  if (t->begin == t->end) t->begin = t->end = begin;
  if (begin < t->begin) {
    clear(c, w, b, begin, t->begin);
    t->begin = begin;
  }
  if (end > t->end) {
    clear(c, w, b, t->end, end);
    t->end = end;
  }
}

static void add_rows(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, const fa_touched *t,
                     const double *from, int64_t width, fa_want *to, float *parts) {
  for (int64_t j = t->begin; j < t->end; ++j) {
    int64_t at = fa_ref_k_index(c, e, hk, j, width);
    fa_rows_best()->add(to->value + at, from + j * width, width);
    for (int64_t x = 0; parts && x < width; ++x) parts[at + x] += (float)fabs(from[j * width + x]);
  }
}

/* All items of the head are merged, and these keys asked for. This thread may never have loaded the head (if its items saw no key). */
static void finish_head(const fa_backward_job *f, fa_ref_scratch *w, const fa_ref_sequence *e, int64_t hk,
                        int64_t begin, int64_t end, fa_bound_scratch *b) {
  fa_ref_scratch_head(w, f->c, e, hk);
  fa_bound_head(b, f->c, w, true);
  fa_bound_backward_finish(f, e, hk, begin, end, b);
}

/* Whether the head at this place of its group has a part in the gradients. */
static bool member_counts(const fa_ref_call *c, int64_t place) {
  const fa_ref_twist *t = c->twist;
  const int64_t only = t ? t->one_member : 0, lost = t ? t->lost_member : 0;
  if (lost != 0) return place != (lost < 0 ? c->group : lost) - 1;
  return only == 0 || place == (only < 0 ? c->group : only) - 1;
}

/* What a work item is: blocks first .. end - 1 of a head's group. */
typedef struct fa_item {
  const fa_ref_sequence *e;
  int64_t hk, part, first, end;
  bool last;     /* of its head */
  int64_t queue; /* of the head */
} fa_item;

static fa_item item_at(const fa_backward_job *f, int64_t item) {
  const fa_ref_call *c = f->c;
  int64_t b = 0;
  while (f->first_item[b + 1] <= item) ++b;
  const fa_ref_sequence *e = &c->entry[b];
  /* Interleaves the heads, so that no thread waits for the preceding part of its own head. */
  const int64_t local = item - f->first_item[b], per_group = items_per_group(c, e);
  const int64_t hk = local % c->heads_kv, part = local / c->heads_kv, blocks = group_blocks(c, e);
  return (fa_item){.e = e,
                   .hk = hk,
                   .part = part,
                   .first = part * blocks / per_group,
                   .end = (part + 1) * blocks / per_group,
                   .last = part == per_group - 1,
                   .queue = b * c->heads_kv + hk};
}

/* Block n of the group, as far as it is asked for. False: it has no part in the gradients. */
static bool block_of_item(const fa_ref_call *c, const fa_item *x, int64_t n, fa_ref_rows *r) {
  const int64_t per_head = n_blocks(x->e->sq);
  if (!member_counts(c, n / per_head)) return false;
  fa_ref_rows_init(c, x->e, fa_ref_group_member(c, x->hk, n / per_head), n % per_head * FA_BLOCK_M, r);
  if (!fa_ref_rows_asked(c, r) || !fa_ref_keys_asked(c, x->hk, r)) return false;
  if (r->j_begin == r->j_end) return false; /* no visible key: all zero */
  fa_ref_coarse_align(c, r);
  return true;
}

/* Adds the item's private sums of these keys to the outputs, and to their bounds. */
static void merge_keys(const fa_backward_job *f, const fa_item *x, int thread, fa_touched t) {
  const fa_ref_call *c = f->c;
  const fa_ref_scratch *w = &f->scratch[thread];
  add_rows(c, x->e, x->hk, &t, w->dk, c->d, &c->out->t[FA_T_DK], f->parts_dk);
  add_rows(c, x->e, x->hk, &t, w->dv, c->dv, &c->out->t[FA_T_DV], f->parts_dv);
  if (f->bound) fa_bound_backward_merge(f, x->e, x->hk, t.begin, t.end, &f->bound[thread]);
}

static void backward_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_call *c = f->c;
  fa_ref_scratch *w = &f->scratch[thread];
  fa_bound_scratch *b = f->bound ? &f->bound[thread] : NULL;
  const fa_item x = item_at(f, item);
  fa_touched t = {0, 0};
  int64_t begin, end;
  fa_ref_rows r;
  for (int64_t n = x.first; n < x.end; ++n) {
    if (!block_of_item(c, &x, n, &r)) continue;
    fa_ref_scratch_head(w, c, x.e, x.hk);
    touch(c, w, b, &t, r.j_begin, r.j_end);
    fa_ref_backward_block(f, &r, w, b, (fa_sums){true, true});
  }
  fa_ref_order_wait(f->order, x.queue, x.part);
  if (fa_ref_gradients_asked(c, x.e, x.hk, &begin, &end)) {
    merge_keys(f, &x, thread, t);
    if (b && x.last) finish_head(f, w, x.e, x.hk, begin, end, b);
  }
  fa_ref_order_done(f->order, x.queue);
}

/* ---- a sample ---- */

/* dQ of a block of its rows. */
static void rows_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_scratch *w = &f->scratch[thread];
  const fa_ref_rows *r = &f->blocks.block[item];
  if (r->j_begin == r->j_end) return;
  fa_ref_scratch_head(w, f->c, r->e, fa_ref_kv_head(f->c, r->h));
  fa_ref_backward_block(f, r, w, f->bound ? &f->bound[thread] : NULL, (fa_sums){.of_rows = true});
}

static fa_touched keys_of(const fa_ref_sequence *e, const fa_ref_place *strip) {
  const int64_t end = strip->i + FA_STRIP_KEYS;
  return (fa_touched){strip->i, end < e->sk ? end : e->sk};
}

/* Zeroes the private sums of all tiles that meet the strip, whose keys are not all in it. */
static void clear_strip(const fa_ref_call *c, const fa_ref_sequence *e, const fa_ref_place *strip,
                        fa_ref_scratch *w, fa_bound_scratch *b) {
  const int64_t first = strip->i < FA_BLOCK_N ? 0 : strip->i - FA_BLOCK_N,
                wide = strip->i + FA_STRIP_KEYS + FA_BLOCK_N, end = wide < e->sk ? wide : e->sk;
  clear(c, w, b, first, end);
}

static bool strips_see(const fa_ref_call *c, const fa_item *x, const fa_ref_rows *r) {
  return fa_ref_strips_meet(c->sample, x->e->b, x->hk, r->j_begin, r->j_end - r->j_begin);
}

/* dK and dV of its strips: the blocks of a work item of the whole, and in the same order, but of their tiles only those
 * that meet a strip. */
static void strips_item(void *context, int thread, int64_t item) {
  const fa_backward_job *f = context;
  fa_ref_call *c = f->c;
  fa_ref_scratch *w = &f->scratch[thread];
  fa_bound_scratch *b = f->bound ? &f->bound[thread] : NULL;
  const fa_item x = item_at(f, item);
  int64_t n_strips;
  fa_ref_rows r;
  const fa_ref_place *strip = fa_ref_strips_of(c->sample, x.e->b, x.hk, &n_strips);
  for (int64_t s = 0; s < n_strips; ++s) clear_strip(c, x.e, &strip[s], w, b);
  for (int64_t n = x.first; n_strips > 0 && n < x.end; ++n) {
    if (!block_of_item(c, &x, n, &r) || !strips_see(c, &x, &r)) continue;
    fa_ref_scratch_head(w, c, x.e, x.hk);
    fa_ref_backward_block(f, &r, w, b, (fa_sums){.of_keys = true});
  }
  fa_ref_order_wait(f->order, x.queue, x.part);
  for (int64_t s = 0; s < n_strips; ++s) {
    const fa_touched keys = keys_of(x.e, &strip[s]);
    merge_keys(f, &x, thread, keys);
    if (b && x.last) finish_head(f, w, x.e, x.hk, keys.begin, keys.end, b);
  }
  fa_ref_order_done(f->order, x.queue);
}

/* A bound of dQ in kernels of narrow formats depends on what may overflow in the tile's other rows. Where the data are not
 * noise, an exponential may be unknown, which counts as that. */
static bool rows_stay_apart(const fa_ref_call *c) {
  return c->profile && (!c->generic || c->p->scale == 0 || fa_bound_may_overflow(c));
}

fa_status fa_ref_backward_outputs(fa_ref_call *c, fa_error *err) {
  const fa_problem *p = c->p;
  bool varlen = p->cu_seqlens_q.n > 0, bounds = c->profile != NULL;
  int64_t q[4] = {p->batch, p->seqlen_q, p->heads_q, p->head_dim};
  int64_t k[4] = {p->batch, p->seqlen_k, p->heads_kv, p->head_dim};
  int64_t q3[3] = {fa_problem_total_q(p), p->heads_q, p->head_dim};
  int64_t k3[3] = {fa_problem_total_k(p), p->heads_kv, p->head_dim};
  int64_t v[4] = {k[0], k[1], k[2], p->head_dim_v}, v3[3] = {k3[0], k3[1], p->head_dim_v};
  int rank = varlen ? 3 : 4;
  __typeof__(fa_want_init) *make = c->shapes_alone ? fa_want_init_unset : fa_want_init;
  fa_status status = make(&c->out->t[FA_T_DQ], p->dtype, rank, varlen ? q3 : q, bounds, err);
  if (!status) status = make(&c->out->t[FA_T_DK], p->dtype, rank, varlen ? k3 : k, bounds, err);
  if (!status) status = make(&c->out->t[FA_T_DV], p->dtype, rank, varlen ? v3 : v, bounds, err);
  if (!status && c->sample) status = fa_ref_span_rows(c, &c->out->t[FA_T_DQ], err);
  if (!status && c->sample) status = fa_ref_span_keys(c, &c->out->t[FA_T_DK], err);
  if (!status && c->sample) status = fa_ref_span_keys(c, &c->out->t[FA_T_DV], err);
  return status;
}

static fa_status backward_run(fa_ref_call *c, fa_error *err) {
  fa_backward_job f = {.c = c, .rows = fa_rows_best()};
  fa_status status = FA_OK;
  fa_ref_team team = {0};
  f.first_item = calloc((size_t)c->p->batch + 1, sizeof *f.first_item);
  f.order = fa_ref_order_new(c->p->batch * c->heads_kv);
  if (!f.first_item || !f.order) goto out_of_memory;
  for (int64_t b = 0; b < c->p->batch; ++b)
    f.first_item[b + 1] = f.first_item[b] + c->heads_kv * items_per_group(c, &c->entry[b]);
  if (c->sample && (status = fa_ref_gather(c, rows_stay_apart(c), &f.blocks, err))) goto out;
  const int64_t n_parts = f.first_item[c->p->batch], n_items = n_parts > f.blocks.n ? n_parts : f.blocks.n;
  if ((status = fa_ref_team_init(&team, c, true, n_items, err))) goto out;
  f.scratch = team.scratch;
  f.bound = team.bound;
  if (c->profile && c->profile->u_ds > 0) {
    f.dk_lost = calloc((size_t)(c->out->t[FA_T_DK].n / c->d) + 1, sizeof *f.dk_lost);
    if (!f.dk_lost) goto out_of_memory;
  }
  if (fa_bound_heads_apart(c)) {
    f.parts_dk = calloc((size_t)c->out->t[FA_T_DK].n + 1, sizeof *f.parts_dk);
    f.parts_dv = calloc((size_t)c->out->t[FA_T_DV].n + 1, sizeof *f.parts_dv);
    if (!f.parts_dk || !f.parts_dv) goto out_of_memory;
  }
  if (c->sample) fa_parallel(team.n, f.blocks.n, rows_item, &f);
  fa_parallel(team.n, n_parts, c->sample ? strips_item : backward_item, &f);
  if (c->profile) fa_bound_backward_derivative(c, f.bound, team.n);
  goto out;
out_of_memory:
  status = fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
out:
  fa_ref_team_free(&team);
  free(f.dk_lost);
  free(f.parts_dk);
  free(f.parts_dv);
  fa_ref_blocks_free(&f.blocks);
  free(f.first_item);
  fa_ref_order_free(f.order);
  return status;
}

fa_status fa_ref_backward(const fa_problem *p, const fa_tensors *in, const fa_tensor *given_o,
                          const fa_tensor *given_lse, const fa_wants *forward, const fa_ref_options *opt,
                          fa_wants *out, fa_error *err) {
  fa_ref_call c;
  FA_ASSERT(forward);
  if (p->family == FA_MERGE) return fa_ref_merge_backward(p, in, forward, opt, out, err);
  fa_status status = fa_ref_call_init(&c, p, in, opt, out, err);
  if (status || (status = fa_ref_mods_init(&c, err))) goto out;
  c.given_o = given_o;
  c.given_lse = given_lse;
  c.forward = forward;
  if ((status = fa_ref_backward_outputs(&c, err))) goto out;
  if ((status = backward_run(&c, err))) goto out;
  const bool whole = !opt->twist || opt->twist->n_rows + opt->twist->n_keys == 0;
  if (whole && p->bias.present && p->bias.grad) status = fa_ref_dbias(&c, err);
  if (whole && status == FA_OK) status = fa_ref_dbuffers(&c, err);
  if (whole && status == FA_OK && p->sinks.grad) status = fa_ref_dsinks(&c, err);
  if (status == FA_OK) status = fa_ref_mods_status(&c, err);
out:
  fa_ref_mods_free(&c);
  fa_ref_call_free(&c);
  if (status) fa_wants_free(out);
  return status;
}
