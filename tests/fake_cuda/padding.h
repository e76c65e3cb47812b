/* Parameters of kernels, and what lies between their members, which is nobody's and differs from plan to plan. */
#ifndef FA_TESTS_FAKE_CUDA_PADDING_H
#define FA_TESTS_FAKE_CUDA_PADDING_H

#include "gpu/kernels/registry/kernel.h"

/* Whether the compiler can tell what is padding: gcc can, from 11 on. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define FA_CLEARS_PADDING 1
#endif
#endif

/* Zeroes it in parameters of that kind, aligned as they are; without such a compiler it stays. */
void params_clear_padding(fa_params_kind kind, void *params);

#endif
