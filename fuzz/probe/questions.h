/* The questions, in the order in which they are asked: later ones build on what earlier ones have found. */
#ifndef FA_FUZZ_PROBE_QUESTIONS_H
#define FA_FUZZ_PROBE_QUESTIONS_H

#include "fuzz/probe/ask.h"

/* What is computed. */
void probe_outputs(probe *x); /* which outputs are written */
/* A call of probe_outputs did not end. False: that was the last that it tries. */
bool probe_skip_first_try(probe *x, const char *reason);
void probe_lse(probe *x);        /* base, scale */
void probe_empty_rows(probe *x); /* O and LSE of rows without a key */
void probe_keys(probe *x);       /* all keys, the mask's corner, the window's ends */
void probe_scale(probe *x);
void probe_gqa(probe *x);
void probe_softcap(probe *x);
void probe_alibi(probe *x);
void probe_alibi_lse(probe *x);
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
void probe_dropout_rounding(probe *x);
void probe_group(probe *x); /* how a group's dK and dV are added up */
void probe_repeat(probe *x);
void probe_settle(probe *x); /* asks nothing: what follows from the rest */

/* ---- shared by questions about P ---- */

/* Of 64 keys all but two are far below: key 0 has score 0, key 1 minus the row's units in 1/128. Rows 0 .. 31: P1 / P0 from
 * 0.99 to 0.61; 32 .. 47: about 2^-15; 48 .. 63: 2^-6 to 2^-9. Every number is a sum of powers of two, 8 bits in all. */
int64_t probe_units(int64_t row);
void probe_set_keys(probe_ask *a);
void probe_set_pair(probe_ask *a, int64_t row, int64_t units);

#endif
