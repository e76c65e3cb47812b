/* A head's sink: one more exponential in the denominator of each of its rows. */
#ifndef FA_REF_TILES_SINK_H
#define FA_REF_TILES_SINK_H

#include "ref/tiles/lse.h"
#include "ref/tiles/mask.h"
#include "ref/tiles/scratch.h"

/* The logit of query head h's sink; -inf: it has none. */
double fa_ref_sink(const fa_ref_call *c, int64_t h);
/* After a block's last tile: w->key_m and w->key_l are what the keys alone have, and m, l and acc get the sink. */
void fa_ref_sink_join(const fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w);

#endif
