/* Toy kernels for sm_90a on the executor: a tensor and its map, launches, operands of products. Included by
 * one source of a program. */
#ifndef FA_TESTS_SIMT_SM90_H
#define FA_TESTS_SIMT_SM90_H

#include "tests/simt/toy.h"

#include "gpu/kernels/machine/prim_sm90.cuh"

#include <math.h>

/* ---- a tensor and its map ---- */

enum { COLS = 72, ROWS = 40, HEADS = 2, BATCH = 2 };
alignas(128) static uint16_t tensor[BATCH][ROWS][HEADS][COLS], stored[BATCH][ROWS][HEADS][COLS];

static inline fa_tensor_map map_of(const void *base, uint32_t cols, uint32_t rows, int swizzle) {
  fa_tensor_box x = {};
  x.base = base;
  const uint64_t size[4] = {COLS, ROWS, HEADS, BATCH};
  const uint64_t bytes[3] = {HEADS * COLS * 2, COLS * 2, ROWS * HEADS * COLS * 2};
  const uint32_t box[4] = {cols, rows, 1, 1};
  memcpy(x.size, size, sizeof size);
  memcpy(x.bytes, bytes, sizeof bytes);
  memcpy(x.box, box, sizeof box);
  x.swizzle = swizzle;
  fa_tensor_map map = {};
  memcpy(map.bytes, &x, sizeof x);
  return map;
}

static inline fa_simt_report run(fa_simt_kernel kernel, uint64_t seed, unsigned threads = N,
                                 size_t shared = 65536, unsigned cluster = 0) {
  const fa_simt_range ranges[] = {{"in", (const char *)global_in, sizeof memory.in, false, nullptr},
                                  {"out", (const char *)global_out, sizeof memory.out, true, nullptr},
                                  {"tensor", (const char *)tensor, sizeof tensor, false, nullptr},
                                  {"stored", (const char *)stored, sizeof stored, true, nullptr}};
  fa_simt_launch l = {};
  l.kernel = kernel;
  l.name = "toy";
  l.cluster = cluster;
  l.grid = {cluster ? cluster : 1, 1, 1};
  l.block = {threads, 1, 1};
  l.shared_bytes = shared;
  l.ranges = ranges;
  l.n_ranges = 4;
  l.schedule_seed = seed;
  l.n_threads = 1;
  fa_simt_report r;
  fa_error err;
  CHECK_MSG(fa_simt_run(&l, &r, &err) == FA_OK, "%s", err.text);
  return r;
}

static inline void expect_fault(const char *what, fa_simt_kernel kernel, fa_subject_state state,
                                const char *words, unsigned threads = N, unsigned cluster = 0) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = run(kernel, seed, threads, 65536, cluster);
    char place[64];
    snprintf(place, sizeof place, "%s:%d", fault_file, fault_line);
    CHECK_MSG(r.state == state && strstr(r.text, words) && strstr(r.text, place), "%s, seed %d: state %d: %s",
              what, (int)seed, r.state, r.text);
  }
}

enum { BAR = 32768 }; /* where barriers are */

static uint32_t swizzled(uint32_t address, int swizzle) {
  const uint32_t mask[] = {0, 7, 3, 1};
  return address ^ (address >> 7 & mask[swizzle]) << 4;
}

static inline void begin(int n_bars, uint32_t count) {
  if (thread_id() == 0) {
    for (int i = 0; i < n_bars; ++i) mbarrier_init(BAR + 8 * i, count);
    mbarrier_init_fence();
  }
  sync_block();
}

/* ---- operands of products ---- */

/* Small integers by position, so that a permuted operand shows. */
static inline float a_of(int i, int k) {
  return float((i * 3 + k * 5 + i * k) % 13 - 6);
}
static inline float b_of(int k, int j) {
  return float((k * 7 + j * 2 + k * j) % 11 - 5);
}

enum { DEPTH = 32, WIDE = 128, A_AT = 0, B_AT = 16384 };

/* Address of element (row, depth) of an operand whose tile's rows are its rows (or its depth), in panels as
 * wide as the swizzle; without one, in core matrices of 8 rows x 16 bytes. */
static inline uint32_t element_at(int row, int depth, int rows, bool trans, int swizzle) {
  if (!swizzle) return (row / 8 * (DEPTH / 8) + depth / 8) * 128 + row % 8 * 16 + depth % 8 * 2;
  const int w = 256 >> swizzle, inner = trans ? row : depth, outer = trans ? depth : row,
            n_outer = trans ? DEPTH : rows;
  return swizzled(uint32_t(inner / (w / 2) * n_outer * w + outer * w + inner % (w / 2) * 2), swizzle);
}
static inline uint64_t operand(uint32_t tile, int rows, bool trans, int swizzle, int step) {
  if (!swizzle) return matrix_descriptor(tile + step * 256, 128, DEPTH / 8 * 128, 0);
  const int w = 256 >> swizzle;
  if (trans) return matrix_descriptor(tile + step * 16 * w, DEPTH * w, 8 * w, swizzle);
  const int in_panel = w / 32;
  return matrix_descriptor(tile + step / in_panel * rows * w + step % in_panel * 32, 16, 8 * w, swizzle);
}

/* One thread per row writes. 16-bit elements are not adjacent in depth in every layout, so a 4-byte word is
 * made of the two elements that share it. */
static inline void put(uint32_t tile, int rows, bool trans, int swizzle, bool is_a) {
  for (int i = thread_id(); i < rows * DEPTH / 2; i += N) {
    const int row = trans ? i * 2 % rows : i / (DEPTH / 2), depth = trans ? i * 2 / rows : i * 2 % DEPTH;
    const int row1 = row + (trans ? 1 : 0), depth1 = depth + (trans ? 0 : 1);
    const float x = is_a ? a_of(row, depth) : b_of(depth, row),
                y = is_a ? a_of(row1, depth1) : b_of(depth1, row1);
    store_shared4(tile + element_at(row, depth, rows, trans, swizzle), pack2(x, y, bf16()));
  }
}

#endif
