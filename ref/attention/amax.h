/* The largest magnitudes of P and of O over a whole call: outputs of one number each, of cases that ask for them. All functions
 * do nothing where these are not in c->out. */
#ifndef FA_REF_ATTENTION_AMAX_H
#define FA_REF_ATTENTION_AMAX_H

#include "ref/attention/team.h"

/* Zeros. None of a sample, nor of a mistake that asks for some rows: both are of all rows. */
fa_status fa_ref_amax_outputs(fa_ref_call *c, fa_error *err);
/* The right number, and between which a kernel's may be. */
void fa_ref_amax_set(fa_want *w, double value, fa_bound_amax between);
/* The same of amax_o, where a subject returned an O, so many times as large, with this largest magnitude, which is 0 and exact where
 * all of O is. */
void fa_ref_amax_o_of(fa_dtype o, double scale, double amax, bool zero, fa_want *w);
/* What row k of a block adds to the thread's w->amax_p: its largest P. After fa_ref_sink_join. */
void fa_ref_amax_row(fa_ref_scratch *w, int64_t k);
/* Once all rows are done: from what the threads have, and from O with its bounds. */
void fa_ref_amax_finish(fa_ref_call *c, const fa_ref_team *team);

#endif
