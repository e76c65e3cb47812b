/* The cases that the command line names. */
#ifndef FA_FUZZ_OPTIONS_CASES_SELECT_H
#define FA_FUZZ_OPTIONS_CASES_SELECT_H

#include "cases/recipe/case.h"
#include "fuzz/options/command.h"

#include <regex.h>

/* The cases of --cases and --case. All are read and checked before anything runs. */
fa_status fa_cli_load_cases(const fa_cli *cli, fa_case_list *list, fa_error *err);
/* Compiles --filter; *has is false without it. FA_ERR_INPUT: not a regular expression. */
fa_status fa_filter_compile(const fa_cli *cli, regex_t *filter, bool *has, fa_error *err);

#endif
