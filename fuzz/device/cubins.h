/* The judge's kernels, compiled ahead of time (written by CMakeLists.txt). */
#ifndef FA_FUZZ_DEVICE_CUBINS_H
#define FA_FUZZ_DEVICE_CUBINS_H

typedef struct fa_device_cubin {
  int capability; /* 90: 9.0 */
  const char *code;
} fa_device_cubin;

extern const fa_device_cubin fa_device_cubins[];
extern const int fa_device_n_cubins;

#endif
