/* Half of gpu/kernels/flash/backward.cu, so that two can be compiled at once. */
#define FA_ONLY_F16
#include "gpu/kernels/flash/backward.cu"
