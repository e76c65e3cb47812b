/* Runs hopper_probe.cu on a GPU: every product of the kernels for sm_90a, boxes copied into and out of shared
 * memory, and products of words by the pipe of doubles. usage: hopper_probe [CUBIN]; without one it only tells whether there is a suitable GPU.
 * Exit: 77 there is none. */
#include "cases/base/rng.h"
#include "gpu/cuda/run.h"
#include "gpu/cuda_backend/context.h"
#include "gpu/kernels/params/tensor_map.h"
#include "gpu/simt/mma.h"
#include "tests/kernels/descriptor_forms_list.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct descriptor_params {
  int one_in_a, high, shift;
  CUdeviceptr wrong;
} descriptor_params;

typedef struct probe_params {
  fa_tensor_map map;
  CUdeviceptr words;
  int n_words, at[4];
} probe_params;

static fa_cuda_context context;
static CUlibrary library;
static CUdeviceptr memory; /* 1 MiB */

static void launch(const char *name, size_t shared, const void *params) {
  const fa_cuda_driver *d = context.driver;
  const unsigned grid[3] = {1, 1, 1};
  CUkernel kernel = NULL;
  fa_error err = {""};
  CHECK_MSG(d->cuLibraryGetKernel(&kernel, library, name) == CUDA_SUCCESS, "no kernel %s", name);
  CHECK(d->cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared, kernel,
                                context.device.device) == CUDA_SUCCESS);
  CHECK_MSG(fa_cuda_launch(d, kernel, name, shared, grid, 128, (fa_cuda_together){false}, params, NULL, &err) == FA_OK, "%s",
            err.text);
  CHECK_MSG(d->cuStreamSynchronize(NULL) == CUDA_SUCCESS, "%s", name);
}

static void check_form(const char *name) {
  float wrong = 0;
  context.driver->cuMemcpyHtoD(memory, &wrong, sizeof wrong);
  for (int i = 0; i < 16; ++i) {
    const descriptor_params p = {i & 1, i >> 1 & 1, (i >> 2) * 320, memory};
    launch(name, 229376, &p);
  }
  context.driver->cuMemcpyDtoH(&wrong, memory, sizeof wrong);
  CHECK_MSG(wrong == 0, "%s: %g threads have something else", name, wrong);
}

static void check_double(void) {
  unsigned wrong = 0;
  context.driver->cuMemcpyHtoD(memory, &wrong, sizeof wrong);
  launch("probe_double", 0, &(struct { CUdeviceptr wrong; }){memory});
  context.driver->cuMemcpyDtoH(&wrong, memory, sizeof wrong);
  CHECK_MSG(wrong == 0, "%u products of words by doubles are not those of integers", wrong);
}

/* A tensor of 136 x 77 x 3 x 2 at 512 KiB, of numbers by position. */
enum { D = 136, S = 77, H = 3, B = 2, WORDS_AT = 0, TENSOR_AT = 512 << 10 };
static uint16_t tensor[B][S][H][D];

static void encode(fa_tensor_map *map, int width, int rows) {
  const cuuint64_t size[4] = {D, S, H, B}, bytes[3] = {H * D * 2, D * 2, S * H * D * 2};
  const cuuint32_t box[4] = {(cuuint32_t)(width ? width : 128) / 2, (cuuint32_t)rows, 1, 1},
                   steps[4] = {1, 1, 1, 1};
  const CUtensorMapSwizzle swizzle = width == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : width == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : width == 32 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                   : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMap m;
  CHECK(context.driver->cuTensorMapEncodeTiled(
            &m, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, (void *)(uintptr_t)(memory + TENSOR_AT), size, bytes,
            box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
            CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  memcpy(map, &m, sizeof m);
}

/* Index in shared memory of column c of row r. */
static int element_at(int width, int r, int c) {
  const int bytes = (width ? width : 128) * r + 2 * c, mask = width == 128  ? 7
                                                              : width == 64 ? 3
                                                              : width == 32 ? 1
                                                                            : 0;
  return (bytes ^ (bytes >> 7 & mask) << 4) / 2;
}

static void check_box(int width, int rows, const int at[4], bool store) {
  static uint16_t words[256 * 64], want[B][S][H][D];
  const int cols = (width ? width : 128) / 2, n = cols * rows;
  probe_params p = {.words = memory + WORDS_AT, .n_words = n / 2, .at = {at[0], at[1], at[2], at[3]}};
  encode(&p.map, width, rows);
  for (int i = 0; i < n; ++i) words[i] = (uint16_t)(7 * i + 1);
  context.driver->cuMemcpyHtoD(memory + WORDS_AT, words, (size_t)n * 2);
  context.driver->cuMemcpyHtoD(memory + TENSOR_AT, tensor, sizeof tensor);
  launch(store ? "probe_store" : "probe_load", 65536 + 64, &p);
  memcpy(want, tensor, sizeof want);
  int wrong = 0;
  if (!store) context.driver->cuMemcpyDtoH(words, memory + WORDS_AT, (size_t)n * 2);
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c) {
      const int d = at[0] + c, s = at[1] + r;
      const bool exists = d >= 0 && d < D && s >= 0 && s < S;
      const uint16_t word = words[element_at(width, r, c)];
      if (store && exists) want[at[3]][s][at[2]][d] = word;
      if (!store) wrong += word != (exists ? tensor[at[3]][s][at[2]][d] : 0);
    }
  static uint16_t got[B][S][H][D];
  context.driver->cuMemcpyDtoH(got, memory + TENSOR_AT, sizeof got);
  wrong += memcmp(got, want, sizeof got) != 0;
  CHECK_MSG(wrong == 0, "box of %d rows of %d bytes at (%d, %d, %d, %d), %s: %d wrong", rows, width, at[0],
            at[1], at[2], at[3], store ? "stored" : "loaded", wrong);
}

static void check_boxes(void) {
  const int widths[] = {128, 64, 32, 0},
            places[][4] = {{0, 0, 0, 0}, {64, 3, 1, 1}, {128, 60, 2, 0}, {0, -5, 1, 0}};
  for (int i = 0; i < B * S * H * D; ++i) (&tensor[0][0][0][0])[i] = (uint16_t)(i % 29989 + 1);
  for (int w = 0; w < 4; ++w)
    for (int rows = 16; rows <= 256; rows *= 4)
      for (int i = 0; i < 4; ++i)
        /* Before the tensor's first row nothing is stored: that is an illegal instruction, and no kernel does it. */
        for (int store = 0; store < (places[i][1] < 0 ? 1 : 2); ++store)
          check_box(widths[w], rows, places[i], store);
}

/* ---- products of 8 bits ---- */

typedef struct fp8_params {
  CUdeviceptr a, b, c, d;
} fp8_params;

/* Operands near each other, of every exponent, among subnormals, sparse, and any bits. */
static uint8_t draw_byte(fa_rng *r, int kind, bool e5m2) {
  const uint8_t u = (uint8_t)fa_rng_next(r), middle = e5m2 ? 0x38 : 0x30;
  if (kind == 0) return (uint8_t)((u & 0x8f) | (middle + (u & 0x10)));
  if (kind == 1) return u & 0x7f;
  if (kind == 2) return u & 0x87;
  if (kind == 3) return fa_rng_below(r, 4) ? 0 : u;
  if (kind == 4) return 0x77 - (u & 3); /* one sign, near the largest */
  return u;
}

static float draw_start(fa_rng *r, int kind) {
  if (kind == 3) return 0;
  const double size = ldexp(fa_rng_next_uniform(r) + 0.5, (int)fa_rng_below(r, 40) - 20);
  return (float)(kind == 4 ? size * 4096 : fa_rng_below(r, 2) ? size : -size);
}

static bool same_bits(float x, float y) {
  return memcmp(&x, &y, sizeof x) == 0 || (x != x && y != y);
}

typedef struct fp8_tile {
  uint8_t a[64][32], b[8][32];
  float c[64][8], d[2][64][8]; /* wgmma's, mma.sync's */
} fp8_tile;

static void draw_tile(fa_rng *r, int kind, bool e5m2, fp8_tile *t) {
  for (int i = 0; i < 64 * 32; ++i) t->a[i / 32][i % 32] = draw_byte(r, kind, e5m2);
  for (int i = 0; i < 8 * 32; ++i) t->b[i / 32][i % 32] = draw_byte(r, kind, e5m2);
  for (int i = 0; i < 64 * 8; ++i) t->c[i / 8][i % 8] = draw_start(r, kind);
}

static void run_tile(bool e5m2, fp8_tile *t) {
  const fp8_params p = {memory, memory + 4096, memory + 8192, memory + 16384};
  context.driver->cuMemcpyHtoD(p.a, t->a, sizeof t->a);
  context.driver->cuMemcpyHtoD(p.b, t->b, sizeof t->b);
  context.driver->cuMemcpyHtoD(p.c, t->c, sizeof t->c);
  launch(e5m2 ? "probe_e5m2" : "probe_e4m3", 0, &p);
  context.driver->cuMemcpyDtoH(t->d, p.d, sizeof t->d);
}

/* wgmma as fa_mma_dot32 has it, bit for bit; how many of mma.sync's outputs are others is told. */
static void check_fp8(bool e5m2) {
  enum { N_KINDS = 6, ROUNDS = 10 };
  static fp8_tile t;
  const char *name = e5m2 ? "e5m2" : "e4m3";
  fa_rng r = fa_rng_make(8, e5m2);
  for (int kind = 0; kind < N_KINDS; ++kind) {
    int wrong = 0, other = 0;
    for (int round = 0; round < ROUNDS; ++round) {
      draw_tile(&r, kind, e5m2, &t);
      run_tile(e5m2, &t);
      for (int i = 0; i < 64 * 8; ++i) {
        const float got = t.d[0][i / 8][i % 8],
                    want = fa_mma_dot32(t.a[i / 8], t.b[i % 8], t.c[i / 8][i % 8], e5m2);
        wrong += !same_bits(got, want);
        other += !same_bits(t.d[1][i / 8][i % 8], got);
      }
    }
    printf("%s, kind %d: of %d outputs %d of mma.sync are not wgmma's\n", name, kind, ROUNDS * 512, other);
    CHECK_MSG(wrong == 0, "%s, kind %d: %d of %d outputs are not the model's", name, kind, wrong,
              ROUNDS * 512);
  }
}

static char *read_file(const char *path) {
  FILE *f = fopen(path, "rb");
  char *data = calloc(1, 16 << 20);
  if (!f || !data || fread(data, 1, 16 << 20, f) == 0) exit(2);
  fclose(f);
  return data;
}

int main(int argc, char **argv) {
  fa_error err;
  if (fa_cuda_context_open(0, &context, &err) != FA_OK || context.device.major != 9) {
    printf("skipped: %s\n", context.driver ? "no device of compute capability 9.0" : err.text);
    return 77;
  }
  if (argc < 2) return 0;
  char *cubin = read_file(argv[1]);
  CHECK(context.driver->cuLibraryLoadData(&library, cubin, NULL, NULL, 0, NULL, NULL, 0) == CUDA_SUCCESS);
  CHECK(context.driver->cuMemAlloc(&memory, 1 << 20) == CUDA_SUCCESS);
  check_fp8(false);
  check_fp8(true);
#define FA_FORM(name, ...) check_form("form_" #name);
  FA_ALL_FORMS
#undef FA_FORM
  check_boxes();
  check_double();
  context.driver->cuMemFree(memory);
  context.driver->cuLibraryUnload(library);
  fa_cuda_context_close(&context);
  free(cubin);
  return check_done();
}
