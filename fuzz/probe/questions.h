/* The questions, in the order in which they are asked: later ones build on what earlier ones have found. */
#ifndef FA_FUZZ_PROBE_QUESTIONS_H
#define FA_FUZZ_PROBE_QUESTIONS_H

#include "fuzz/probe/ask.h"

/* What is computed. */
void probe_outputs(probe *x);    /* which outputs are written */
void probe_lse(probe *x);        /* base, scale */
void probe_empty_rows(probe *x); /* O and LSE of rows without a key */
void probe_keys(probe *x);       /* all keys, the mask's corner, the window's ends */
void probe_scale(probe *x);
void probe_gqa(probe *x);
void probe_softcap(probe *x);
void probe_alibi(probe *x);
void probe_dropout(probe *x);
void probe_dlse(probe *x);

/* How it is computed. */
void probe_operands(probe *x);          /* of QK and PV */
void probe_backward_operands(probe *x); /* of the four products of the backward */
void probe_pv_accumulator(probe *x);
void probe_qk_accumulator(probe *x);
void probe_scores(probe *x);
void probe_p(probe *x);
void probe_ds(probe *x);
void probe_dp(probe *x);
void probe_delta(probe *x);
void probe_p_kept(probe *x);
void probe_exp(probe *x);
void probe_tiles(probe *x);
void probe_group(probe *x); /* how a group's dK and dV are added up */
void probe_repeat(probe *x);
void probe_settle(probe *x); /* asks nothing: what follows from the rest */

#endif
