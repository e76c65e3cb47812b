/* Attention over a KV cache of 8 or 4 bits, of the fewest rows: the lines FA_FEWEST of gpu/kernels/registry/cache.def, or
 * the one in FA_ONLY. */
#define FA_GENERAL false
#include "gpu/kernels/cache/eight_entry.cuh"

FA_UNIT_BEGIN(cache, fewest)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FEWEST FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, fewest)
