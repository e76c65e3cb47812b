#include "fuzz/judging/places.h"

#include "cases/base/rng.h"
#include "ref/engine/call.h"

#include <stdlib.h>
#include <string.h>

#define STREAM 0x73616d706c65 /* of rows; strips take the next */

typedef struct drawing {
  const fa_ref_call *c;
  fa_rng rng;
  uint8_t *taken;      /* a bit for every row */
  uint64_t (*used)[4]; /* of every head of a sequence: places in a block that are used up for now */
} drawing;

static bool test_and_set(uint8_t *bits, int64_t at) {
  const uint8_t bit = (uint8_t)(1u << at % 8);
  const bool was = bits[at / 8] & bit;
  bits[at / 8] |= bit;
  return was;
}

static int64_t strips_of(const fa_ref_sequence *e) {
  return (e->sk + FA_STRIP_KEYS - 1) / FA_STRIP_KEYS;
}

/* A place of the block that none of the head's rows so far has, all of them equally likely; then it is used. */
static int64_t free_place(uint64_t used[4], fa_rng *rng) {
  int64_t n = 0;
  for (int i = 0; i < 4; ++i) n += __builtin_popcountll(used[i]);
  if (n == FA_BLOCK_M) memset(used, 0, 4 * sizeof *used), n = 0;
  int64_t left = fa_rng_below(rng, FA_BLOCK_M - n), place = 0;
  for (;; ++place)
    if (!(used[place / 64] >> place % 64 & 1) && left-- == 0) break;
  used[place / 64] |= (uint64_t)1 << place % 64;
  return place;
}

/* Row number n of all. A row of a whole block moves to another place of it, so that a head's rows fit into few blocks
 * (ref/tiles/gather.h) and every row is as likely as before. */
static fa_ref_place row_at(drawing *x, int64_t n, int64_t *number) {
  const fa_ref_call *c = x->c;
  int64_t b = 0, first = 0;
  for (; n - first >= c->entry[b].sq * c->heads_q; ++b) first += c->entry[b].sq * c->heads_q;
  const int64_t sq = c->entry[b].sq, h = (n - first) / sq, whole = sq / FA_BLOCK_M * FA_BLOCK_M;
  int64_t i = (n - first) % sq;
  if (i < whole) i = i / FA_BLOCK_M * FA_BLOCK_M + free_place(x->used[b * c->heads_q + h], &x->rng);
  *number = first + h * sq + i;
  return (fa_ref_place){b, h, i};
}

static fa_ref_place strip_at(const fa_ref_call *c, int64_t n) {
  int64_t b = 0, first = 0;
  for (; n - first >= strips_of(&c->entry[b]) * c->heads_kv; ++b)
    first += strips_of(&c->entry[b]) * c->heads_kv;
  const int64_t each = strips_of(&c->entry[b]);
  return (fa_ref_place){b, (n - first) / each, (n - first) % each * FA_STRIP_KEYS};
}

/* So many different rows; out of memory: false. */
static bool draw_rows(drawing *x, int64_t wanted, int64_t of, places *out) {
  int64_t number;
  bool ok = true;
  for (int64_t b = 0; wanted >= of && b < x->c->p->batch; ++b)
    for (int64_t h = 0; ok && h < x->c->heads_q; ++h) ok = places_add_head(out, &x->c->entry[b], h);
  while (ok && wanted < of && out->n < wanted) {
    const fa_ref_place at = row_at(x, fa_rng_below(&x->rng, of), &number);
    if (!test_and_set(x->taken, number)) ok = places_add(out, at);
  }
  return ok;
}

static bool draw_strips(drawing *x, int64_t wanted, int64_t of, places *out) {
  bool ok = true;
  for (int64_t n = 0; ok && wanted >= of && n < of; ++n) ok = places_add(out, strip_at(x->c, n));
  while (ok && wanted < of && out->n < wanted) {
    const int64_t n = fa_rng_below(&x->rng, of);
    if (!test_and_set(x->taken, n)) ok = places_add(out, strip_at(x->c, n));
  }
  return ok;
}

static void count(const fa_ref_call *c, bool strips, fa_sample_places *out) {
  for (int64_t b = 0; b < c->p->batch; ++b) {
    out->of_rows += c->entry[b].sq * c->heads_q;
    if (strips) out->of_strips += strips_of(&c->entry[b]) * c->heads_kv;
  }
}

static bool draw(drawing *x, const fa_sample *sample, uint64_t stream, fa_sample_places *out) {
  places rows = {0}, strips = {0};
  const uint64_t seed = fa_rng_u64(sample->seed, stream, STREAM);
  x->rng = fa_rng_make(seed, STREAM);
  bool ok = draw_rows(x, sample->rows, out->of_rows, &rows);
  memset(x->taken, 0, (size_t)(out->of_rows > out->of_strips ? out->of_rows : out->of_strips) / 8 + 1);
  x->rng = fa_rng_make(seed, STREAM + 1);
  if (ok) ok = draw_strips(x, sample->strips, out->of_strips, &strips);
  places_settle(&rows);
  places_settle(&strips);
  out->row = rows.at, out->n_rows = rows.n;
  out->strip = strips.at, out->n_strips = strips.n;
  return ok;
}

fa_status fa_sample_draw(const fa_problem *p, const fa_tensors *in, const fa_sample *sample, uint64_t stream,
                         bool strips, fa_sample_places *out, fa_error *err) {
  const fa_ref_options options = {.n_threads = 1};
  fa_ref_call c;
  fa_wants none;
  *out = (fa_sample_places){0};
  const fa_status status = fa_ref_call_init(&c, p, in, &options, &none, err);
  if (status != FA_OK) return status;
  count(&c, strips, out);
  drawing x = {.c = &c};
  x.taken = calloc((size_t)(out->of_rows > out->of_strips ? out->of_rows : out->of_strips) / 8 + 1, 1);
  x.used = calloc((size_t)(p->batch * p->heads_q) + 1, sizeof *x.used);
  const bool ok = x.taken && x.used && draw(&x, sample, stream, out);
  free(x.taken);
  free(x.used);
  fa_ref_call_free(&c);
  return ok ? FA_OK : places_no_memory(err);
}
