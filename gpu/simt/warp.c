/* The collectives that move or compute data: done once, by the last lane to arrive. */
#include "gpu/simt/block.h"
#include "gpu/simt/mma.h"

#include <math.h>
#include <string.h>

typedef struct shfl_args {
  uint32_t value, result;
  int lane_mask;
} shfl_args;

static void shfl_execute(fa_simt_warp *w) {
  for (int l = 0; l < FA_WARP; ++l) {
    shfl_args *me = w->args[l];
    me->result = ((shfl_args *)w->args[(l ^ me->lane_mask) & 31])->value;
  }
}

uint32_t fa_simt_shfl_xor(uint32_t value, int lane_mask, fa_simt_place at) {
  shfl_args a = {.value = value, .lane_mask = lane_mask};
  fa_simt_collective(FA_COLLECTIVE_SHFL, &a, shfl_execute, at);
  return a.result;
}

typedef struct ldmatrix_args {
  uint32_t *r, shared;
  bool transpose;
} ldmatrix_args;

/* The 8 rows of a matrix stand in a row here: lane l takes one word of them, or two halves. */
static void ldmatrix_execute(fa_simt_warp *w) {
  const char *shared = fa_simt_current->shared;
  const bool transpose = ((ldmatrix_args *)w->args[0])->transpose;
  union {
    uint16_t half[4][8][8];
    uint32_t word[4][32];
  } e;
  for (int row = 0; row < 32; ++row)
    memcpy(e.half[row / 8][row % 8], shared + ((ldmatrix_args *)w->args[row])->shared, 16);
  for (int l = 0; l < FA_WARP; ++l) {
    uint32_t *r = ((ldmatrix_args *)w->args[l])->r;
    const int i = l / 4, j = 2 * (l % 4);
    for (int m = 0; m < 4; ++m)
      r[m] = transpose ? e.half[m][j][i] | (uint32_t)e.half[m][j + 1][i] << 16 : e.word[m][l];
  }
}

/* The check comes when the lane arrives: the data cannot change before the last one does without a race that
 * the check of the other access would see. */
void fa_simt_ldmatrix_x4(uint32_t r[4], uint32_t shared, bool transpose, fa_simt_place at) {
  fa_simt_thread *t = fa_simt_current->running;
  fa_simt_shared_check(t, shared, 16, "ldmatrix read", at);
  fa_simt_shared_note_read(t, shared, 16, at);
  ldmatrix_args a = {.r = r, .shared = shared, .transpose = transpose};
  fa_simt_collective(FA_COLLECTIVE_LDMATRIX, &a, ldmatrix_execute, at);
}

typedef struct mma_args {
  float *d;
  const uint32_t *a, *b;
  bool bf16;
} mma_args;

/* A register holds two neighbours of a row of a, and of a column of b. */
static void mma_execute(fa_simt_warp *w) {
  uint16_t a[16][16], b[16][8];
  float d[16][8];
  const bool bf16 = ((mma_args *)w->args[0])->bf16;
  for (int l = 0; l < FA_WARP; ++l) {
    const mma_args *x = w->args[l];
    const int i = l / 4, j = 2 * (l % 4);
    memcpy(&a[i][j], &x->a[0], 4);
    memcpy(&a[i + 8][j], &x->a[1], 4);
    memcpy(&a[i][j + 8], &x->a[2], 4);
    memcpy(&a[i + 8][j + 8], &x->a[3], 4);
    for (int r = 0; r < 2; ++r) {
      b[j + 8 * r][i] = (uint16_t)x->b[r];
      b[j + 8 * r + 1][i] = (uint16_t)(x->b[r] >> 16);
    }
    memcpy(&d[i][j], x->d, 8);
    memcpy(&d[i + 8][j], x->d + 2, 8);
  }
  fa_mma_m16n8k16(d, (const uint16_t(*)[16])a, (const uint16_t(*)[8])b, bf16);
  for (int l = 0; l < FA_WARP; ++l) {
    float *to = ((mma_args *)w->args[l])->d;
    memcpy(to, &d[l / 4][2 * (l % 4)], 8);
    memcpy(to + 2, &d[l / 4 + 8][2 * (l % 4)], 8);
  }
}

void fa_simt_mma_m16n8k16(float d[4], const uint32_t a[4], const uint32_t b[2], bool bf16, fa_simt_place at) {
  mma_args x = {.d = d, .a = a, .b = b, .bf16 = bf16};
  fa_simt_collective(FA_COLLECTIVE_MMA, &x, mma_execute, at);
}

typedef struct tf32_args {
  float *d;
  const uint32_t *a, *b;
} tf32_args;

static void tf32_execute(fa_simt_warp *w) {
  uint32_t a[16][8], b[8][8];
  float d[16][8];
  for (int l = 0; l < FA_WARP; ++l) {
    const tf32_args *x = w->args[l];
    for (int r = 0; r < 4; ++r) a[l / 4 + r % 2 * 8][l % 4 + r / 2 * 4] = x->a[r];
    for (int r = 0; r < 2; ++r) b[l % 4 + r * 4][l / 4] = x->b[r];
    for (int r = 0; r < 4; ++r) d[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2] = x->d[r];
  }
  fa_mma_m16n8k8_tf32(d, (const uint32_t(*)[8])a, (const uint32_t(*)[8])b);
  for (int l = 0; l < FA_WARP; ++l) {
    const tf32_args *x = w->args[l];
    for (int r = 0; r < 4; ++r) x->d[r] = d[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2];
  }
}

void fa_simt_mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], fa_simt_place at) {
  tf32_args x = {.d = d, .a = a, .b = b};
  fa_simt_collective(FA_COLLECTIVE_MMA_TF32, &x, tf32_execute, at);
}

float fa_simt_exp2(float x) {
  if (fabsf(x) < 0x1p-126f) x = 0.0f;
  const float y = exp2f(x);
  return y < 0x1p-126f ? 0.0f : y;
}
