/* Part of every NAME.so, and of nothing else: the way in. */
#include "gpu/backends/mutant.h"

extern __attribute__((visibility("default"))) const fa_mutant_library fa_mutant_table;
const fa_mutant_library fa_mutant_table = {FA_MUTANT_LAYOUT, &fa_backend_host};
