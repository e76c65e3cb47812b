/* Which keys are visible to a row, and which pairs of a tile are. */
#ifndef FA_REF_TILES_MASK_H
#define FA_REF_TILES_MASK_H

#include "ref/engine/call.h"
#include "ref/math/gemm.h"

/* Keys [*lo, *hi) visible to row i by length, causality and window (block lists are separate). None: 0, 0. */
void fa_ref_visible_range(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i, int64_t *lo,
                          int64_t *hi);
/* One query block of one head, or rows of several of its blocks. */
typedef struct fa_ref_rows {
  const fa_ref_sequence *e;
  int64_t h, n;
  int64_t i0;                             /* the block's first row */
  int64_t row[FA_BLOCK_M];                /* i0 .. i0 + n - 1, unless gathered (ref/tiles/gather.h) */
  bool left_out[FA_BLOCK_M];              /* nothing is wanted of the row */
  int64_t lo[FA_BLOCK_M], hi[FA_BLOCK_M]; /* per row: visible keys by range */
  int64_t j_begin, j_end;                 /* union over the rows; none: equal */
} fa_ref_rows;
void fa_ref_rows_init(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i0, fa_ref_rows *r);
/* False if block lists hide the whole tile. */
bool fa_ref_tile_visited(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n);
/* The pairs of a tile that may be visible: for each row, from the tile's key first to end - 1; for each key
 * likewise the rows. */
typedef struct fa_ref_tile_spans {
  int64_t row_first[FA_BLOCK_M], row_end[FA_BLOCK_M], key_first[FA_BLOCK_N], key_end[FA_BLOCK_N];
  fa_gemm_spans rows, keys; /* all of the above */
} fa_ref_tile_spans;
void fa_ref_tile_spans_init(const fa_ref_rows *r, int64_t j0, int64_t n, fa_ref_tile_spans *out);
/* Part of [j0, j0 + n) visible to row r->row[k] by range, as offsets from j0; none: *begin == *end. */
void fa_ref_row_span(const fa_ref_rows *r, int64_t k, int64_t j0, int64_t n, int64_t *begin, int64_t *end);

#endif
