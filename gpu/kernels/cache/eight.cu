/* Attention over a KV cache of 8 or 4 bits: the lines FA_EIGHT of gpu/kernels/registry/cache.def, or
 * the one in FA_ONLY. */
#define FA_GENERAL true
#include "gpu/kernels/cache/eight_entry.cuh"

FA_UNIT_BEGIN(cache, eight)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_EIGHT FA_ENTRY
#include "gpu/kernels/registry/cache.def"
#endif
FA_UNIT_END(cache, eight)
