/* Other projects' acceptance rules, of one tensor. The numbers and where they are from: rival_rules.c. */
#ifndef FA_TESTS_MUTANTS_RULES_H
#define FA_TESTS_MUTANTS_RULES_H

#include "cases/tensors/set.h"
#include "cases/tensors/table.h"
#include "cases/vocabulary/problem.h"

/* From ALLCLOSE_EIGHT on: of calls with operands of 8 bits alone. */
enum { FA2X, ALLCLOSE, XFORMERS, XFORMERS2, ALLCLOSE_EIGHT, COSINE, RELATIVE_NORM, N_RULES };

/* rejects[rule] |= the rule rejects this tensor. exact, rounded: its elements in float64 and as standard attention in the
 * element type has them. ignore: elements to skip; may be NULL. */
void fa_rules_judge(const fa_problem *p, fa_tensor_id id, const fa_tensor *got, const double *exact,
                    const double *rounded, const bool *ignore, bool *rejects);

#endif
