/* The entry point of every NAME.so, compiled into nothing else. */
#include "gpu/backends/mutant.h"

extern __attribute__((visibility("default"))) const fa_mutant_library fa_mutant_table;
const fa_mutant_library fa_mutant_table = {FA_MUTANT_LAYOUT, &fa_backend_host};
