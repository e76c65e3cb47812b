/* An NVRTC that compiles nothing: its code is the unit's FA_ONLY, by which tests/fake_cuda/device.c finds the
 * kernel. */
#ifndef FA_TESTS_FAKE_CUDA_NVRTC_H
#define FA_TESTS_FAKE_CUDA_NVRTC_H

#include "gpu/driver/nvrtc.h"

typedef struct fake_nvrtc {
  int fail_with;    /* input: what compiling returns, with a log */
  int n_programs;   /* output: programs not destroyed yet */
  int n_compiled;   /* number of compilations */
  char arch[64];    /* of the last one */
  char speed[16];   /* and its fast-compile level, or "" */
  bool has_headers; /* of the last one: stdint.h and the kernels' */
} fake_nvrtc;

extern fake_nvrtc fake_compiler;

/* Makes it the compiler, with this version and this file (any existing one). */
void fake_nvrtc_use(int major, int minor, const char *file);

#endif
