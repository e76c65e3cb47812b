/* An NVRTC that compiles nothing: its code is the unit's FA_ONLY, which is what tests/fake_cuda/device.c wants to find a
 * kernel by. */
#ifndef FA_TESTS_FAKE_CUDA_NVRTC_H
#define FA_TESTS_FAKE_CUDA_NVRTC_H

#include "gpu/driver/nvrtc.h"

typedef struct fake_nvrtc {
  int fail_with;    /* to be set: what compiling ends with, with a log */
  int n_programs;   /* to be looked at: not destroyed yet */
  int n_compiled;   /* and how often it was asked */
  char arch[64];    /* of the last one */
  char speed[16];   /* and its fast-compile level, or "" */
  bool has_headers; /* of the last one: stdint.h and the kernels' */
} fake_nvrtc;

extern fake_nvrtc fake_compiler;

/* Makes it the compiler: of this version, and of a file (any that exists) that says so. */
void fake_nvrtc_use(int major, int minor, const char *file);

#endif
