/* What a subject says about itself, or what a probe has found out about it. */
#ifndef FA_CASES_VOCABULARY_DECLARATION_H
#define FA_CASES_VOCABULARY_DECLARATION_H

#include "cases/arithmetic/fields.h"
#include "cases/vocabulary/contract.h"

typedef struct fa_declaration {
  fa_contract contract;
  unsigned contract_given; /* fa_contract_field bits: the others have their defaults */
  fa_arithmetic arithmetic;
  bool arithmetic_given; /* false: arithmetic is a default that fits most kernels */
} fa_declaration;

#endif
