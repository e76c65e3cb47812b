/* All hypotheses, by theme. */
#include "fuzz/explain/hypothesis.h"

const fa_hypothesis *const fa_hypotheses[] = {fa_hypotheses_of_masks, fa_hypotheses_of_scales, NULL};
