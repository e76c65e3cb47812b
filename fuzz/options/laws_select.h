/* The laws that --laws and --law select, and a case under one of them. */
#ifndef FA_FUZZ_OPTIONS_LAWS_SELECT_H
#define FA_FUZZ_OPTIONS_LAWS_SELECT_H

#include "cases/recipe/case.h"
#include "fuzz/options/command.h"

typedef struct fa_law_selection {
  fa_law v[FA_N_LAWS];
  int n; /* 0: cases are judged as they are */
} fa_law_selection;

/* FA_ERR_INPUT: an unknown name. */
fa_status fa_law_select(const fa_cli *cli, fa_law_selection *out, fa_error *err);
/* Makes the law judge the case, and names it "NAME law:key-permutation". */
fa_status fa_law_apply(fa_case *c, fa_law law);

#endif
