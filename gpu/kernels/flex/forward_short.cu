/* The same for short problems: the lines FA_SHORT_FORWARD. */
#include "gpu/kernels/flex/forward_unit.cuh"

#define FA_ENTRY(name, T, BN, VC) FA_MADE(name, T, BN, VC, "FA_ENTRY(" FA_TEXT_4(name, T, BN, VC) ")")

FA_UNIT_BEGIN(flex, forward_short)
#ifdef FA_ONLY
FA_ONLY
#else
#define FA_SHORT_FORWARD FA_ENTRY
#include "gpu/kernels/registry/flex.def"
#endif
FA_UNIT_END(flex, forward_short)
