/* Writes the tensors of one call in the recorded-run format, so that `check` can judge them again
 * elsewhere. */
#ifndef FA_FUZZ_ONE_DUMP_H
#define FA_FUZZ_ONE_DUMP_H

#include "cases/recipe/case.h"

/* Writes folder/<name>-<hash of the recipe>.safetensors with one group: inputs before the call, outputs after
 * it (if the call appends, also the caches afterwards as k_after, v_after). Creates the folder. path receives
 * the file's name. */
fa_status fa_dump_write(const char *folder, const fa_case *c, const fa_tensors *pristine,
                        const fa_tensors *after, char *path, size_t path_size, fa_error *err);

/* FA_ERR_INPUT if folder cannot be created or written to, so that the user learns it before hours of work. */
fa_status fa_dump_check_folder(const char *folder, fa_error *err);

/* A case's name as a file name: characters other than letters, digits, '.', '-' and '_' become '_'. */
void fa_file_name_from(const char *name, char *out, size_t size);

#endif
