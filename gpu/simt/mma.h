/* The arithmetic of Hopper's tensor cores: mma.sync m16n8k16 with f16 or bf16 inputs and f32 accumulation, as
 * measured on an H100.
 *
 * For one output, the 16 exact products and the accumulator are aligned to the largest exponent, each
 * truncated there to 25 fraction bits, and added exactly; the sum is truncated toward zero to f32. A
 * product's exponent is the sum of its operands' exponents (its significand is in [1,4)); subnormals have the
 * smallest exponent; zeros are left out; the largest exponent is at least -126. NaN results are 0x7fffffff. A
 * sum of exactly 0 is +0. */
#ifndef FA_GPU_SIMT_MMA_H
#define FA_GPU_SIMT_MMA_H

#include <stdbool.h>
#include <stdint.h>

/* d = c + a b, transposed so that a vector runs down the rows: a[k][row], b[k][column], c and d[column][row];
 * raw patterns of 16 bits or, for tf32 with half the depth, of 32, or with twice the depth of 8. */
typedef struct fa_mma_tile {
  union {
    uint16_t a[16][16];
    uint32_t a_tf32[8][16];
    uint8_t a_eight[32][16];
  };
  union {
    uint16_t b[16][8];
    uint32_t b_tf32[8][8];
    uint8_t b_eight[32][8];
  };
  float c[8][16], d[8][16];
} __attribute__((aligned(64))) fa_mma_tile;
void fa_mma_tile_run(fa_mma_tile *t, bool bf16);
void fa_mma_tile_run_tf32(fa_mma_tile *t);

/* d[i][j] += sum_k a[i][k] b[k][j]; row-major, raw 16-bit patterns. */
void fa_mma_m16n8k16(float d[16][8], const uint16_t a[16][16], const uint16_t b[16][8], bool bf16);
/* One output for any operands, by integer arithmetic: the reference for the fast path above. */
float fa_mma_dot16(const uint16_t *a, const uint16_t *b, float c, bool bf16);

/* mma.sync m16n8k8 with tf32 inputs, and one output of it: the eight products of the operands' upper 19 bits,
 * summed with the accumulator as above. Not measured on a device: the bounds of such kernels allow for
 * coarser sums. */
void fa_mma_m16n8k8_tf32(float d[16][8], const uint32_t a[16][8], const uint32_t b[8][8]);
float fa_mma_dot8_tf32(const uint32_t *a, const uint32_t *b, float c);

/* One output of wgmma with e4m3 or e5m2 inputs, 32 deep, as measured on an H100 (mma.sync differs): as above, but the 32 products and the accumulator are cut to 13
 * fraction bits of the largest, and so is the sum. */
float fa_mma_dot32(const uint8_t *a, const uint8_t *b, float c, bool e5m2);
/* The same of a whole tile of e4m3, bit for bit, faster. */
void fa_mma_tile_run_e4m3(fa_mma_tile *t);

#endif
