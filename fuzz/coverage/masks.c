/* Coverage of chunked attention and of custom masks. */
#include "fuzz/coverage/table.h"

static void cover_chunks(fa_coverage *v, const fa_problem *p) {
  const int64_t n = fa_mask_chunk(&p->mask), page = p->kvcache.page_size;
  const bool has = n > 0;
  fa_coverage_see(v, FA_COVER_MASKS, 300, "chunks", has);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "chunks: left edge", has && p->mask.left >= 0);
  fa_coverage_see(v, FA_COVER_MASKS, 8, "chunks: one key", n == 1);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "chunks: a page", has && n == page);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "chunks: pages of another size", has && page > 0 && n != page);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "chunks: more than all keys", n > p->seqlen_k);
  fa_coverage_see(v, FA_COVER_MASKS, 50, "chunks: seqlen_q > seqlen_k", has && p->seqlen_q > p->seqlen_k);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "chunks: left padding", has && p->leftpad_k.n > 0);
  fa_coverage_see(v, FA_COVER_MASKS, 50, "chunks: variable length", has && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_MASKS, 10, "chunks: top left", has && p->mask.align == FA_ALIGN_TOP_LEFT);
}

/* The bits of a sequence that is not the last end inside a byte. */
static bool ends_inside_byte(const fa_problem *p) {
  int64_t rows, keys;
  for (int64_t b = 0; p->mask_bits.present && b + 1 < p->batch; ++b) {
    fa_problem_pairs(p, b, &rows, &keys);
    if (rows * keys % 8 != 0) return true;
  }
  return false;
}

void fa_coverage_masks(fa_coverage *v, const fa_problem *p) {
  const fa_mask_bits *m = &p->mask_bits;
  const bool has = m->present, tree = has && m->source != FA_BITS_DENSITY, paged = p->kvcache.page_size > 0;
  cover_chunks(v, p);
  fa_coverage_see(v, FA_COVER_MASKS, 200, "mask bits", has);
  fa_coverage_see(v, FA_COVER_MASKS, 60, "mask bits: trees", tree);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "mask bits: trees over a cache", tree && p->kvcache.present);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "mask bits: rows without any key", has && m->empty_rows > 0);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "mask bits: hidden diagonal", has && m->hide_diagonal);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "mask bits and a window", has && p->mask.type == FA_MASK_WINDOW);
  fa_coverage_see(v, FA_COVER_MASKS, 40, "mask bits: an early entry ends inside a byte", ends_inside_byte(p));
  fa_coverage_see(v, FA_COVER_MASKS, 60, "mask bits: backward", has && p->backward);
  fa_coverage_see(v, FA_COVER_MASKS, 30, "mask bits: variable length", has && fa_problem_is_varlen(p));
  fa_coverage_see(v, FA_COVER_MASKS, 20, "mask bits: pages", has && paged);
  fa_coverage_see(v, FA_COVER_MASKS, 10, "mask bits: shared pages", has && p->kvcache.shared_pages > 0);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "mask bits: splits", has && p->splits > 1);
  fa_coverage_see(v, FA_COVER_MASKS, 20, "mask bits: left padding", has && p->leftpad_k.n > 0);
}
