/* Where this program lies: what belongs to it is found from there, so that all of it can be moved. */
#ifndef FA_CASES_BASE_PROGRAM_H
#define FA_CASES_BASE_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* path receives the folder of the running program, absolute and without links. False: it cannot be found out, and path is "". */
bool fa_program_folder(char *path, size_t size);
/* The same for the path of the program itself. */
bool fa_program_path(char *path, size_t size);

#endif
