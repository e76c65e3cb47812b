/* The bf16 half of gpu/kernels/flash/backward.cu, so that the two halves can be compiled in parallel. */
#define FA_ONLY_BF16
#include "gpu/kernels/flash/backward.cu"
