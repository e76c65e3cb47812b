#include "ref/tiles/gather.h"

#include <stdlib.h>
#include <string.h>

/* Every tile of keys has its full width, so that nothing is changed by tiles behind the last. */
static bool is_full(const fa_ref_rows *r) {
  return (r->j_end - r->j_begin) % FA_BLOCK_N == 0;
}

static bool fits(const fa_ref_rows *into, const fa_ref_rows *own, int64_t slot, bool apart) {
  if (!into->left_out[slot] || into->n != own->n) return false;
  if (into->i0 == own->i0) return true;
  if (apart || own->n != FA_BLOCK_M || into->j_begin != own->j_begin) return false;
  return into->j_end == own->j_end || (is_full(into) && is_full(own));
}

static void put(fa_ref_rows *into, const fa_ref_rows *own, int64_t slot) {
  into->row[slot] = own->row[slot];
  into->lo[slot] = own->lo[slot];
  into->hi[slot] = own->hi[slot];
  into->left_out[slot] = false;
  if (own->j_end > into->j_end) into->j_end = own->j_end;
}

/* A block like the row's own, with nothing in it yet: rows that see no key. */
static fa_ref_rows *append(fa_ref_blocks *x, int64_t *room, const fa_ref_rows *own) {
  if (x->n == *room) {
    *room = *room ? 2 * *room : 16;
    fa_ref_rows *more = realloc(x->block, (size_t)*room * sizeof *more);
    if (!more) return NULL;
    x->block = more;
  }
  fa_ref_rows *r = &x->block[x->n++];
  *r = *own;
  for (int64_t k = 0; k < r->n; ++k) {
    r->left_out[k] = true;
    r->lo[k] = r->hi[k] = 0;
  }
  return r;
}

/* The block of this head, from the first on, that takes the row; NULL: none. */
static fa_ref_rows *find(fa_ref_blocks *x, int64_t first, const fa_ref_rows *own, int64_t slot, bool apart) {
  for (int64_t n = x->n - 1; n >= first; --n)
    if (fits(&x->block[n], own, slot, apart)) return &x->block[n];
  return NULL;
}

fa_status fa_ref_gather(const fa_ref_call *c, bool apart, fa_ref_blocks *out, fa_error *err) {
  const fa_ref_sample *s = c->sample;
  int64_t room = 0, first = 0;
  fa_ref_rows own = {.i0 = -1};
  *out = (fa_ref_blocks){0};
  for (int64_t n = 0; n < s->n_rows; ++n) {
    const fa_ref_place *at = &s->row[n];
    const fa_ref_sequence *e = &c->entry[at->b];
    const int64_t slot = at->i % FA_BLOCK_M;
    const bool same_head = own.i0 >= 0 && own.e == e && own.h == at->h;
    if (!same_head) first = out->n;
    if (!same_head || own.i0 != at->i - slot) fa_ref_rows_init(c, e, at->h, at->i - slot, &own);
    fa_ref_rows *into = find(out, first, &own, slot, apart);
    if (!into) into = append(out, &room, &own);
    if (!into) return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
    put(into, &own, slot);
  }
  return FA_OK;
}

void fa_ref_blocks_free(fa_ref_blocks *x) {
  free(x->block);
  *x = (fa_ref_blocks){0};
}
