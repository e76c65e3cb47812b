/* A driver that launches nothing and says what would have been: for calls between tensors that do not exist. Threads are apart:
 * each has its log, its device and its stream. */
#ifndef FA_TESTS_FAKE_CUDA_RECORDER_H
#define FA_TESTS_FAKE_CUDA_RECORDER_H

#include "gpu/driver/libcuda.h"

#include <stdint.h>

typedef struct recorder_log {
  int n_launches, n_maps;
  uint64_t
      hash; /* of all launches: kernels, grids, attributes and every byte of the parameters but a tile counter's */
  int counters[2]; /* of the first launches, those that have one; -1: none */
  int n_counters;
} recorder_log;

extern _Thread_local recorder_log recorded;
/* Device 1 is an A100, 0 and 2 are H100s. */
extern _Thread_local CUdevice recorder_device;
extern _Thread_local bool recorder_captures;

/* Makes it the driver, and its code that of every kernel; nothing is compiled. */
void recorder_use(void);
void recorder_clear(void);

#endif
