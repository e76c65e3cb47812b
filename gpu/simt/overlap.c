/* Programmatic dependent launch: which threads have waited for the preceding kernels, and what that makes of
 * scratch memory. */
#include "gpu/simt/overlap.h"

void fa_simt_wait_for_kernels_before(void) {
  fa_simt_block *b = fa_simt_current;
  b->any_waited = b->running->waited = true;
}

void fa_simt_share_wait(fa_simt_block *b) {
  bool waited = false;
  for (int i = 0; i < b->n_threads; ++i)
    waited |= b->threads[i].waited && b->warps[i / FA_WARP].at_barrier >> i % FA_WARP & 1;
  for (int i = 0; i < b->n_threads; ++i) b->threads[i].waited |= waited;
}

void fa_simt_end_launch(const fa_simt_launch *l, bool lets_next_start) {
  for (int i = 0; i < l->n_ranges; ++i) {
    uint8_t *written = l->ranges[i].written;
    const size_t n = written ? (l->ranges[i].bytes + 3) / 4 : 0;
    for (size_t w = 0; w < n; ++w)
      if (written[w] != FA_UNWRITTEN)
        written[w] = written[w] == FA_WRITTEN_NOW && lets_next_start ? FA_WRITTEN_BEFORE : FA_WRITTEN;
  }
}
