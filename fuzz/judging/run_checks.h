/* Checks of a run other than its numbers: where it wrote, what it left alone, whether it repeats. */
#ifndef FA_FUZZ_JUDGING_RUN_CHECKS_H
#define FA_FUZZ_JUDGING_RUN_CHECKS_H

#include "report/result.h"

/* Checks guards, gaps between output elements, inputs, and cache slots that are not appended to. Raises OOB
 * or INPUT_MODIFIED. poison: content of the outputs before the run. */
void fa_check_memory(const fa_problem *p, const fa_tensors *pristine, const fa_tensors *after,
                     fa_poison poison, fa_result *r);

/* True for an output that a kernel with this profile accumulates in memory in any order, so that two runs may
 * differ in it. */
bool fa_any_order(const fa_problem *p, const fa_profile *profile, fa_tensor_id id);

/* Compares two runs of one case bit for bit, the first on poison A, the second on second_poison. If they
 * differ, raises NONDETERMINISTIC, naming the first element, and returns true. An element that neither run
 * wrote is not this check's business. */
bool fa_check_repeats(const fa_problem *p, const fa_profile *profile, const fa_tensors *first,
                      const fa_tensors *second, fa_poison second_poison, fa_result *r);

#endif
