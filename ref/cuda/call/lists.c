#include "ref/cuda/lists.h"

#include "ref/cuda/run.h"

#include "ref/tiles/mask.h"
#include "ref/tiles/score.h"
#include "ref/tiles/sink.h"

#include <stdlib.h>

static int64_t up(int64_t n, int64_t by) {
  return (n + by - 1) / by;
}

static int64_t most(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static fa_judge_block block_at(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i0) {
  fa_ref_rows r;
  fa_ref_rows_init(c, e, h, i0, &r);
  return (fa_judge_block){.b = e->b,
                          .h = h,
                          .i0 = i0,
                          .n = r.n,
                          .j_begin = r.j_begin,
                          .j_end = r.j_end,
                          .want = fa_ref_q_index(c, e, h, i0, 1),
                          .want_lse = fa_ref_lse_index(c, e, h, i0),
                          .slope = fa_ref_alibi_slope(c, e->b, h),
                          .sink = fa_ref_sink(c, h)};
}

static int64_t first_byte(const fa_ref_call *c, int64_t b) {
  const int64_t index[FA_MAX_RANK] = {b};
  return c->p->mask_bits.present ? (int64_t)fa_tensor_get(&c->in->t[FA_T_MASK_INDPTR], index) : 0;
}

static fa_judge_head head_of(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk) {
  const int64_t want = fa_ref_k_index(c, e, hk, 0, 1);
  return (fa_judge_head){.b = e->b,
                         .sk = e->sk,
                         .sq = e->sq,
                         .want = want,
                         .load =
                             fa_judge_gathers(c) ? fa_judge_gathered_first(c, e->b) * c->heads_kv + hk : want,
                         .bytes = first_byte(c, e->b)};
}

/* A head that some members of a group read, the first of them `member`. */
static void list_head(const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk, int64_t member,
                      const fa_judge_room *room, fa_judge_lists *l) {
  const int64_t some = room->apart ? 1 : c->group;
  fa_judge_head *head = &l->head[l->n_heads++];
  *head = head_of(c, e, hk);
  head->members = some == c->group ? 1 : member == 0 ? c->group : 0;
  head->first_block = l->n_blocks;
  for (int64_t m = member; m < member + some; ++m)
    for (int64_t i0 = 0; i0 < e->sq; i0 += FA_BLOCK_M) {
      fa_judge_block *block = &l->block[l->n_blocks++];
      *block = block_at(c, e, fa_ref_group_member(c, hk, m), i0);
      block->load = room->by_turn ? m * e->sq + i0 : block->want;
      block->head = l->n_heads - 1;
    }
  head->end_block = l->n_blocks;
}

static void list_all(const fa_ref_call *c, const fa_judge_room *room, fa_judge_lists *l) {
  const int64_t some = room->apart ? 1 : c->group;
  for (int64_t b = 0; b < c->p->batch; ++b)
    for (int64_t hk = 0; hk < c->heads_kv; ++hk)
      for (int64_t m = 0; m < c->group; m += some) list_head(c, &c->entry[b], hk, m, room, l);
}

static size_t wave_bytes(const fa_judge_wave *w, const fa_judge_room *room) {
  return (size_t)w->rows * room->row_bytes + (size_t)w->pairs * room->pair_bytes +
         (size_t)w->keys * 2 * sizeof(float) +
         (size_t)w->parts * room->part_bytes;
}

/* The wave with this block too; the block's place in it. */
static fa_judge_wave with_block(const fa_judge_wave *w, fa_judge_block *b) {
  const int64_t width = b->j_end - b->j_begin, strips = up(b->n, FA_STRIP);
  fa_judge_wave out = *w;
  b->first_row = w->rows;
  b->first_strip = w->strips;
  b->first_tile = w->tiles;
  b->first_key = w->keys;
  b->first_pair = w->pairs;
  out.n_blocks += 1;
  out.rows += b->n;
  out.strips += strips;
  out.tiles += strips * up(width, FA_STRIP);
  out.keys += width;
  out.pairs += b->n * width;
  out.width = most(w->width, width);
  out.parts = out.width > FA_PART ? out.rows * up(out.width, FA_PART) : 0;
  return out;
}

static fa_status add_waves(fa_judge_lists *l, const fa_judge_room *room, fa_judge_turn *t, fa_error *err) {
  const int64_t first = l->head[t->first_head].first_block,
                end = l->head[t->first_head + t->n_heads - 1].end_block;
  t->first_wave = l->n_waves;
  for (int64_t n = first; n < end;) {
    fa_judge_wave w = {.first_block = n};
    for (; n < end; ++n) {
      const fa_judge_wave with = with_block(&w, &l->block[n]);
      if (wave_bytes(&with, room) > room->wave_bytes) break;
      if (room->by_turn) l->block[n].load += l->head[l->block[n].head].query;
      l->block[n].head -= t->first_head;
      w = with;
    }
    if (w.n_blocks == 0)
      return fa_fail(err, FA_ERR_MEMORY, "judge: no room for one block of %lld keys",
                     (long long)l->block[n].j_end);
    w.n_heads = l->block[n - 1].head - l->block[w.first_block].head + 1;
    l->wave[l->n_waves++] = w;
    fa_judge_wave *m = &l->most;
    *m = (fa_judge_wave){.n_blocks = most(m->n_blocks, w.n_blocks),
                         .rows = most(m->rows, w.rows),
                         .keys = most(m->keys, w.keys),
                         .parts = most(m->parts, w.parts),
                         .pairs = most(m->pairs, w.pairs)};
  }
  t->n_waves = l->n_waves - t->first_wave;
  return FA_OK;
}

static void add_head(fa_judge_head *head, bool by_turn, int64_t queries, fa_judge_turn *t) {
  head->key = t->keys;
  if (by_turn) head->load = t->keys;
  head->query = t->queries;
  head->key_strip = t->key_strips;
  t->n_heads += 1;
  t->keys += head->sk;
  t->queries += queries;
  t->key_strips += up(head->sk, FA_STRIP);
  t->most_sk = most(t->most_sk, head->sk);
}

/* Whether a head, with all members of its group, has room in a turn. */
static bool has_room(const fa_judge_turn *t, const fa_judge_head *head, int64_t queries,
                     const fa_judge_room *room) {
  return (size_t)(t->keys + head->members * head->sk) * room->key_bytes +
             (size_t)(t->queries + queries) * room->query_bytes <=
         room->turn_bytes;
}

static fa_status divide(const fa_ref_call *c, fa_judge_lists *l, const fa_judge_room *room, fa_error *err) {
  fa_status status = FA_OK;
  int64_t keys = 0, queries_before = 0;
  for (int64_t n = 0; status == FA_OK && n < l->n_heads;) {
    fa_judge_turn t = {.first_head = n, .keys_before = keys, .queries_before = queries_before};
    for (; n < l->n_heads; n += l->head[n].members) {
      const fa_judge_head *head = &l->head[n];
      const int64_t queries = head->sq * c->group;
      if (!has_room(&t, head, queries, room)) break;
      for (int64_t m = 0; m < head->members; ++m)
        add_head(&l->head[n + m], room->by_turn, m == 0 ? queries : 0, &t);
    }
    if (t.n_heads == 0)
      return fa_fail(err, FA_ERR_MEMORY, "judge: no room for one head of %lld keys",
                     (long long)l->head[n].sk);
    l->most_of_turn.keys = most(l->most_of_turn.keys, t.keys);
    l->most_of_turn.queries = most(l->most_of_turn.queries, t.queries);
    keys += t.keys;
    queries_before += t.queries;
    status = add_waves(l, room, &t, err);
    l->turn[l->n_turns++] = t;
  }
  return status;
}

fa_status fa_judge_lists_make(const fa_ref_call *c, const fa_judge_room *room, fa_judge_lists *out,
                              fa_error *err) {
  int64_t heads = c->p->batch * (room->apart ? c->heads_q : c->heads_kv), blocks = 0;
  for (int64_t b = 0; b < c->p->batch; ++b) blocks += c->heads_q * up(c->entry[b].sq, FA_BLOCK_M);
  *out = (fa_judge_lists){.head = calloc((size_t)heads + 1, sizeof *out->head),
                          .block = calloc((size_t)blocks + 1, sizeof *out->block),
                          .turn = calloc((size_t)heads + 1, sizeof *out->turn),
                          .wave = calloc((size_t)blocks + 1, sizeof *out->wave)};
  if (!out->head || !out->block || !out->turn || !out->wave)
    return fa_fail(err, FA_ERR_MEMORY, "judge: out of memory");
  list_all(c, room, out);
  return divide(c, out, room, err);
}

void fa_judge_lists_free(fa_judge_lists *l) {
  free(l->head);
  free(l->block);
  free(l->turn);
  free(l->wave);
  *l = (fa_judge_lists){0};
}
