/* The portable flex forward kernels: the lines FA_FORWARD of gpu/kernels/registry/flex.def, or the one
 * in FA_ONLY. For a device they are compiled for the expressions of a call, which are defined before this
 * file (gpu/kernels/mods/call.cuh). */
#include "gpu/kernels/flex/forward_unit.cuh"

#define FA_ENTRY(name, T, VC) FA_MADE(name, T, 64, VC, "FA_ENTRY(" FA_TEXT_3(name, T, VC) ")")

FA_UNIT_BEGIN(flex, forward)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_FORWARD FA_ENTRY
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, forward)
