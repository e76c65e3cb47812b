/* What measurements on the GPU share: memory, and the time of calls. Errors end the program. */
#ifndef FA_TESTS_BENCH_DEVICE_H
#define FA_TESTS_BENCH_DEVICE_H

#include "gpu/cuda_backend/context.h"

#include <stddef.h>
#include <stdint.h>

/* The first device; without one the program exits with 77. */
void bench_open(void);
void bench_close(void);
const fa_cuda_context *bench_context(void);
CUstream bench_stream(void); /* in which calls are made */

CUdeviceptr bench_allocate(size_t bytes);
/* Full of bf16 numbers between -2 and 2. */
CUdeviceptr bench_allocate_random(size_t bytes);
CUdeviceptr bench_upload(const int32_t *from, size_t n);
/* The numbers below n in an irregular order, always the same: a block table whose pages do not lie in a row. */
CUdeviceptr bench_upload_pages(int64_t n);
void bench_free(const CUdeviceptr *memory, int n);

/* Medians, in microseconds: of a call between two events, and of one among consecutive calls in a graph, which excludes
 * the cost of submitting them. make: makes the call once. */
typedef struct bench_times {
  double one, in_a_row;
} bench_times;
bench_times bench_time(void (*make)(const void *call), const void *call);

/* GB/s that a copy of 2 GiB reads and writes. */
double bench_copy_gb(void);

#endif
