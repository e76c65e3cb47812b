/* The bits of custom masks, from their recipe. */
#include "cases/base/rng.h"
#include "cases/data/build.h"
#include "cases/vocabulary/mask_bits.h"

#include <string.h>

/* Keyed by positions, so that a shrunk case keeps the bits that remain. */
enum { OF_PAIRS, OF_ROWS, OF_PARENTS };

typedef struct bit_rows {
  const fa_mask_bits *recipe;
  int64_t b, rows, keys;
  unsigned char *bytes; /* of this sequence */
} bit_rows;

static double draw(const bit_rows *s, int what, int64_t i, int64_t j) {
  return fa_rng_uniform(s->recipe->seed, (uint64_t)s->b << 2 | (uint64_t)what,
                        (uint64_t)i << 32 | (uint64_t)j);
}

static void set_bit(const bit_rows *s, int64_t i, int64_t j, bool visible) {
  const int64_t n = i * s->keys + j;
  const unsigned char bit = (unsigned char)(1u << n % 8);
  s->bytes[n / 8] = (unsigned char)(visible ? s->bytes[n / 8] | bit : s->bytes[n / 8] & ~bit);
}

/* Keys [begin, end) of a row; bytes at once, since a row may have millions of keys. */
static void set_bits(const bit_rows *s, int64_t i, int64_t begin, int64_t end, bool visible) {
  const int64_t row = i * s->keys;
  int64_t j = begin;
  for (; j < end && (row + j) % 8 != 0; ++j) set_bit(s, i, j, visible);
  const int64_t whole = j < end ? (end - j) / 8 : 0;
  if (whole > 0) memset(s->bytes + (row + j) / 8, visible ? 0xff : 0, (size_t)whole);
  for (j += whole * 8; j < end; ++j) set_bit(s, i, j, visible);
}

/* -1: none. */
static int64_t parent_of(const bit_rows *s, int64_t i) {
  switch (s->recipe->source) {
  case FA_BITS_CHAIN:
    return i - 1;
  case FA_BITS_STAR:
    return i > 0 ? 0 : -1;
  default:
    return (int64_t)(draw(s, OF_PARENTS, i, 0) * (double)(i + 1)) - 1;
  }
}

/* The row of a tree: the keys before the draft tokens, and the row's ancestors. */
static void set_tree_row(const bit_rows *s, int64_t i) {
  const int64_t prefix = s->keys - s->rows; /* below 0: the first draft tokens are no keys */
  const int64_t first_draft = prefix > 0 ? prefix : 0;
  set_bits(s, i, 0, first_draft, true);
  set_bits(s, i, first_draft, s->keys, false);
  for (int64_t node = i; node >= 0; node = parent_of(s, node))
    if (prefix + node >= 0) set_bit(s, i, prefix + node, true);
}

static void set_row(const bit_rows *s, int64_t i) {
  const fa_mask_bits *r = s->recipe;
  const int64_t diagonal = i + s->keys - s->rows;
  if (r->source != FA_BITS_DENSITY) set_tree_row(s, i);
  for (int64_t j = 0; r->source == FA_BITS_DENSITY && j < s->keys; ++j)
    set_bit(s, i, j, draw(s, OF_PAIRS, i, j) < r->density);
  if (r->empty_rows > 0 && draw(s, OF_ROWS, i, 0) < r->empty_rows) set_bits(s, i, 0, s->keys, false);
  if (r->hide_diagonal && diagonal >= 0 && diagonal < s->keys) set_bit(s, i, diagonal, false);
}

fa_status fa_build_bits(const fa_case *c, fa_tensors *set, fa_error *err) {
  const fa_problem *p = &c->problem;
  if (!p->mask_bits.present) return FA_OK;
  const int64_t bytes = fa_problem_mask_bytes(p, p->batch), n = p->batch + 1;
  fa_status status = fa_tensors_add(set, FA_T_MASK_BITS, FA_U8, 1, &bytes, NULL, 0, err);
  if (status == FA_OK) status = fa_build_int32(set, FA_T_MASK_INDPTR, 1, &n, NULL, err);
  if (status != FA_OK) return status;
  int32_t *indptr = (int32_t *)(void *)set->t[FA_T_MASK_INDPTR].data;
  unsigned char *all = (unsigned char *)set->t[FA_T_MASK_BITS].data;
  memset(all, 0xff, (size_t)bytes); /* bits that pad a sequence to whole bytes are set */
  indptr[0] = 0;
  for (int64_t b = 0; b < p->batch; ++b) {
    bit_rows s = {.recipe = &p->mask_bits, .b = b, .bytes = all + indptr[b]};
    fa_problem_pairs(p, b, &s.rows, &s.keys);
    for (int64_t i = 0; i < s.rows; ++i) set_row(&s, i);
    indptr[b + 1] = indptr[b] + (int32_t)((s.rows * s.keys + 7) / 8);
  }
  return FA_OK;
}
