/* All hypotheses, by theme. */
#include "fuzz/explain/hypothesis.h"

const fa_hypothesis *const fa_hypotheses[] = {fa_hypotheses_of_masks,
                                              fa_hypotheses_of_keys,
                                              fa_hypotheses_of_scales,
                                              fa_hypotheses_of_lse,
                                              fa_hypotheses_of_heads,
                                              fa_hypotheses_of_scores,
                                              fa_hypotheses_of_bias,
                                              fa_hypotheses_of_dropout,
                                              fa_hypotheses_of_calls,
                                              fa_hypotheses_of_gradients,
                                              fa_hypotheses_of_tiles,
                                              fa_hypotheses_of_order,
                                              NULL};
