/* A sample's rows, put together to blocks in which their values come out as in their own.
 *
 * A product's rounding depends on the number of its rows, on a row's place among them, and on how the keys are cut into
 * tiles. So a row keeps its place modulo FA_BLOCK_M, and shares a block only with rows whose tiles are its own. */
#ifndef FA_REF_TILES_GATHER_H
#define FA_REF_TILES_GATHER_H

#include "ref/tiles/mask.h"

typedef struct fa_ref_blocks {
  fa_ref_rows *block; /* by sequence and head */
  int64_t n;
} fa_ref_blocks;

/* apart: rows of different blocks never share one, because a bound of theirs depends on their neighbours. Free it,
 * whatever is returned. */
fa_status fa_ref_gather(const fa_ref_call *c, bool apart, fa_ref_blocks *out, fa_error *err);
void fa_ref_blocks_free(fa_ref_blocks *x);

#endif
