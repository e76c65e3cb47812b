/* Case files by name: "causal" is the causal.json that came with the program, from any folder.
 *
 * They are looked for in $FA_CASES_DIR, if it is set; then in what is beside the program: ../share/fa-verify/cases of an
 * installed one, ../cases of one in a build folder of the source tree or in the Python package. */
#ifndef FA_FUZZ_OPTIONS_CASE_FILES_H
#define FA_FUZZ_OPTIONS_CASE_FILES_H

#include "cases/base/status.h"

#include <stddef.h>

/* path receives the file that an argument of --cases means: the argument itself if it is "-", has a '/', or a file of
 * that name is in the working folder; else the known file of that name, with or without ".json". FA_ERR_INPUT: there is
 * none; the message says which there are. */
fa_status fa_case_files_find(const char *given, char *path, size_t size, fa_error *err);

typedef struct fa_case_files {
  char **path; /* in order of name; of two files of one name only the one that is found */
  int n;
} fa_case_files;

/* All files that have a name. FA_ERR_MEMORY. The caller frees, also after an error. */
fa_status fa_case_files_list(fa_case_files *files, fa_error *err);
void fa_case_files_free(fa_case_files *files);
/* The name of a path from the list, without its folder and ".json"; cut to size. */
void fa_case_files_name(const char *path, char *name, size_t size);

#endif
