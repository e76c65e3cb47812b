/* Chunked masks and custom masks of packed bits. */
#include "fuzz/explain/hypothesis.h"

static bool has_chunks(const fa_failure *x) {
  return fa_mask_chunk(&x->p->mask) > 0;
}

/* number: what is added to the position whose chunk counts, and whether the position is the row's own number. */
static void other_chunk(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                        int64_t *lo, int64_t *hi) {
  const fa_mask *m = &c->p->mask;
  const int64_t position = i + e->shift, of = t->number[1] ? i : position + t->number[0];
  const int64_t chunk = fa_mask_chunk_begin(fa_mask_chunk(m), of);
  *lo = chunk > 0 ? chunk : 0;
  if (m->left >= 0 && position - m->left > *lo) *lo = position - m->left;
  *hi = position + 1 < e->sk ? position + 1 : e->sk;
}

static bool begin_elsewhere(fa_mistake *m, int64_t by, bool of_row) {
  m->twist.range = other_chunk;
  m->twist.number[0] = by;
  m->twist.number[1] = of_row;
  return true;
}

/* As a causal mask, or as a window where it has a left edge. */
static bool chunk_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (!has_chunks(x)) return false;
  fa_mask_set_window(&m->p.mask, x->p->mask.left, 0);
  fa_mistake_say(m, "chunks ignored, causal instead");
  return true;
}

static bool chunk_of_row(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  if (!has_chunks(x)) return false;
  fa_mistake_say(m, "chunks of the row's number, not of its position");
  return begin_elsewhere(m, 0, true);
}

static bool chunk_by_one(const fa_failure *x, int v, fa_mistake *m) {
  if (!has_chunks(x)) return false;
  fa_mistake_say(m, "chunks begin one position %s", v ? "early" : "late");
  return begin_elsewhere(m, v ? 1 : -1, false);
}

static bool bits_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.mask_bits.present = false;
  fa_mistake_say(m, "custom mask ignored");
  return x->p->mask_bits.present;
}

static uint8_t mirrored(uint8_t byte) {
  uint8_t out = 0;
  for (int i = 0; i < 8; ++i) out = (uint8_t)(out << 1 | (byte >> i & 1));
  return out;
}

static bool bits_big_endian(const fa_failure *x, int v, fa_mistake *m) {
  const int64_t n = x->p->mask_bits.present ? fa_tensor_count(&x->in->t[FA_T_MASK_BITS]) : 0;
  (void)v;
  if (n == 0 || !fa_mistake_copy_input(m, FA_T_MASK_BITS)) return false;
  uint8_t *byte = (uint8_t *)m->in.t[FA_T_MASK_BITS].data;
  for (int64_t i = 0; i < n; ++i) byte[i] = mirrored(byte[i]);
  fa_mistake_say(m, "custom mask's bytes read from their highest bit");
  return true;
}

static bool bits_inverted(const fa_failure *x, int v, fa_mistake *m) {
  const int64_t n = x->p->mask_bits.present ? fa_tensor_count(&x->in->t[FA_T_MASK_BITS]) : 0;
  (void)v;
  if (n == 0 || !fa_mistake_copy_input(m, FA_T_MASK_BITS)) return false;
  uint8_t *byte = (uint8_t *)m->in.t[FA_T_MASK_BITS].data;
  for (int64_t i = 0; i < n; ++i) byte[i] = (uint8_t)~byte[i];
  fa_mistake_say(m, "custom mask hides what it should show");
  return true;
}

const fa_hypothesis fa_hypotheses_of_chunks[] = {
    {"chunk_ignored", "chunks are ignored: a causal mask, or a window", FA_OF_ALL, 1, chunk_ignored},
    {"chunk_of_row", "chunks are counted from the first row, not from the first key", FA_OF_ALL, 1,
     chunk_of_row},
    {"chunk_one_position", "chunks begin a position late or early", FA_OF_ALL, 2, chunk_by_one},
    {"bits_ignored", "the custom mask is ignored", FA_OF_ALL, 1, bits_ignored},
    {"bits_big_endian", "the custom mask's bytes are read from their highest bit", FA_OF_ALL, 1,
     bits_big_endian},
    {"bits_inverted", "the custom mask hides what it should show", FA_OF_ALL, 1, bits_inverted},
    {0}};
