/* The table of named sets (fa_arithmetic_named). */
#ifndef FA_CASES_ARITHMETIC_SETS_H
#define FA_CASES_ARITHMETIC_SETS_H

#include "cases/arithmetic/fields.h"

/* Elements of f32 that a matrix unit cannot multiply as they are. IO: as for others. */
typedef struct fa_arithmetic_of_f32 {
  fa_format operands, p, ds;
  fa_rounding rounding; /* of all three */
} fa_arithmetic_of_f32;

typedef struct fa_arithmetic_set_row {
  const char *name, *what;
  fa_arithmetic a; /* name left out; IO: the element type */
  fa_arithmetic_of_f32 f32;
} fa_arithmetic_set_row;

extern const fa_arithmetic_set_row fa_arithmetic_sets[];
extern const int fa_n_arithmetic_sets;

#endif
