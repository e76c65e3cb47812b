/* The table of named sets (fa_arithmetic_named). */
#ifndef FA_CASES_ARITHMETIC_SETS_H
#define FA_CASES_ARITHMETIC_SETS_H

#include "cases/arithmetic/fields.h"

typedef struct fa_arithmetic_set_row {
  const char *name, *what;
  fa_arithmetic a;  /* name left out; IO: the element type */
  fa_format f32[3]; /* for f32: operands, P, dS; IO: as in a */
} fa_arithmetic_set_row;

extern const fa_arithmetic_set_row fa_arithmetic_sets[];
extern const int fa_n_arithmetic_sets;

#endif
