/* Steps of random expressions with the operators and functions that torch's score and mask functions lower to. They
 * draw from a stream of their own, so that the rest of a case stays what it was. */
#ifndef FA_FUZZ_GENERATE_OPERATORS_H
#define FA_FUZZ_GENERATE_OPERATORS_H

#include "cases/expr/ast.h"
#include "fuzz/generate/parts.h"

/* Sometimes wraps the malloc'd text in one or two more steps; text is freed or returned. NULL: out of memory. */
char *fa_gen_operators(const fa_gen *g, fa_expr_kind kind, char *text);

#endif
