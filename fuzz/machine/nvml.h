/* What state the GPU is in. */
#ifndef FA_FUZZ_MACHINE_NVML_H
#define FA_FUZZ_MACHINE_NVML_H

#include <stdbool.h>
#include <stddef.h>

/* The first GPU as NVML sees it now. The library is loaded when it is first asked for. */
typedef struct fa_gpu_state {
  bool known;
  char why_not[96]; /* if it is not known */
  char name[96];
  int sm_mhz, memory_mhz, celsius;
  double watts;
  unsigned long long
      throttle;  /* NVML's bits: 1 idle, 4 power cap, 8 slowdown, 0x20 thermal (software), 0x40 thermal */
  int processes; /* that compute on it; -1: not told */
} fa_gpu_state;
void fa_gpu_state_read(fa_gpu_state *out);
/* "power cap, thermal"; "none". */
void fa_gpu_throttle_text(unsigned long long bits, char *out, size_t size);

#endif
