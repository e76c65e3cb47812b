/* From q.k to the final score. */
#ifndef FA_REF_TILES_SCORE_H
#define FA_REF_TILES_SCORE_H

#include "ref/mods/tile.h"
#include "ref/tiles/mask.h"

/* Applies the score chain to one tile in place: s[k*ld + j], for row r->row[k] and key j0 + j, holds scale *
 * q.k and becomes the final score, -inf where masked. tanh_out (same layout) receives tanh(t/c) if there is a
 * softcap; may be NULL. mod: the thread's expressions; mod->before, if present, keeps the inputs of
 * score_mod. */
void fa_ref_score_tile(const fa_ref_call *c, const fa_ref_rows *r, int64_t j0, int64_t n, double *s,
                       int64_t ld, double *tanh_out, fa_ref_mod_scratch *mod);
double fa_ref_alibi_slope(const fa_ref_call *c, int64_t b, int64_t h);
/* The bias row (e, h, i) as pointer and element stride along k. */
const char *fa_ref_bias_row(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);

#endif
