/* The cases that the command line names. */
#ifndef FA_FUZZ_OPTIONS_CASES_SELECT_H
#define FA_FUZZ_OPTIONS_CASES_SELECT_H

#include "cases/recipe/case.h"
#include "fuzz/options/command.h"

/* Where a case of a list comes from: a case file's "random" part, which a subject may have drawn again. */
typedef struct fa_case_origin {
  const char *profile; /* of fa_generate_profiles; NULL: the file says the case itself */
  uint64_t seed;
  int64_t index;
} fa_case_origin;

/* The cases of --cases, files by path or name (fuzz/options/case_files.h), and of --case. All are read and checked before anything runs. origins: NULL, or receives one
 * for each case (owned by the caller); NULL if none of them was drawn. */
fa_status fa_cli_load_cases(const fa_cli *cli, fa_case_list *list, fa_case_origin **origins, fa_error *err);

#endif
