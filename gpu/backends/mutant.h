/* The backend mutant:NAME: the host backend with a kernel that has one planted bug (tests/mutants/); the
 * target `mutants` builds it as a shared library. mutant:NAME,ARGUMENT passes an argument to the host
 * backend: mutant:NAME,hopper is host:hopper with the bug. */
#ifndef FA_GPU_BACKENDS_MUTANT_H
#define FA_GPU_BACKENDS_MUTANT_H

#include "gpu/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The folder of NAME.so and list.tsv (a line per mutant: name, class, stands for, what; separated by tabs):
 * $FA_MUTANT_DIR, or the folder mutants next to this program. */
void fa_mutant_folder(char *path, size_t size);

/* What NAME.so exports as fa_mutant_table: its own host backend, and a number that equals this program's if
 * both agree on the structs that they exchange. */
typedef struct fa_mutant_library {
  uint64_t layout; /* FA_MUTANT_LAYOUT */
  const fa_backend *backend;
} fa_mutant_library;

#define FA_MUTANT_LAYOUT                                                                                     \
  ((uint64_t)sizeof(fa_problem) | (uint64_t)sizeof(fa_tensors) << 16 | (uint64_t)sizeof(fa_profile) << 32 |  \
   (uint64_t)(sizeof(fa_run_options) + sizeof(fa_outcome)) << 48)

#ifdef __cplusplus
}
#endif

#endif
