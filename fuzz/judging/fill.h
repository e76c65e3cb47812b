/* The data of a case made on a machine: the same bits as the CPU makes. */
#ifndef FA_FUZZ_JUDGING_FILL_H
#define FA_FUZZ_JUDGING_FILL_H

#include "cases/recipe/case.h"
#include "ref/cuda/machine.h"

/* A case with fewer elements is made sooner by the CPU. */
#define FA_JUDGE_FILL_LEAST 65536

/* Fills the inputs that a device can (cases/data/fill_plan.h), if they have `least` elements and more. *filled: a bit for
 * each. Where it fails, the rest is as it was. */
fa_status fa_judge_make_data(fa_judge_machine *m, const fa_case *c, int64_t least, fa_tensors *set,
                             fa_tensor_bits *filled, fa_error *err);

#endif
