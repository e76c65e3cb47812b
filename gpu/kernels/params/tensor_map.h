/* A tensor in global memory and the box of it that bulk copies (TMA) move: a CUtensorMap on the device, and
 * on the host executor a fa_tensor_box in the same bytes. */
#ifndef FA_GPU_KERNELS_PARAMS_TENSOR_MAP_H
#define FA_GPU_KERNELS_PARAMS_TENSOR_MAP_H

#include <stdint.h>

#ifdef __cplusplus
#define FA_ALIGNED64 alignas(64)
#else
#define FA_ALIGNED64 _Alignas(64)
#endif

/* Permutes the 16-byte chunks in shared memory within rows of 128, 64 or 32 bytes, by the address bits above.
 * The values are those of a matrix descriptor. */
typedef enum fa_tensor_swizzle {
  FA_SWIZZLE_NONE,
  FA_SWIZZLE_128,
  FA_SWIZZLE_64,
  FA_SWIZZLE_32
} fa_tensor_swizzle;

/* 4 axes of 16-bit elements, the contiguous one first. */
typedef struct fa_tensor_box {
  const void *base;  /* aligned to 16 bytes */
  uint64_t size[4];  /* elements, >= 1 */
  uint64_t bytes[3]; /* from one element of axis 1, 2, 3 to the next; multiples of 16 */
  uint32_t box[4];   /* elements, 1..256; box[0] is the swizzle's width */
  int swizzle;       /* fa_tensor_swizzle */
  int bf16;
} fa_tensor_box;

/* The kernel's argument: the size of a CUtensorMap. */
typedef struct fa_tensor_map {
  FA_ALIGNED64 unsigned char bytes[128];
} fa_tensor_map;

#endif
