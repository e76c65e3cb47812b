/* The executor's bulk copies, barriers in shared memory and products of a warpgroup: right kernels give the
 * right numbers under every schedule, and each rule broken is reported at its line. */
#include "tests/simt_toy.h"

#include "gpu/kernels/prim_sm90.cuh"

#include <math.h>

/* ---- a tensor and its map ---- */

enum { COLS = 72, ROWS = 40, HEADS = 2, BATCH = 2 };
alignas(128) static uint16_t tensor[BATCH][ROWS][HEADS][COLS], stored[BATCH][ROWS][HEADS][COLS];

static fa_tensor_map map_of(const void *base, uint32_t cols, uint32_t rows, int swizzle) {
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

static fa_tensor_map map;
static int width, at[4]; /* bytes of the box's rows; its first element */

static fa_simt_report run(fa_simt_kernel kernel, uint64_t seed, unsigned threads = N, size_t shared = 65536) {
  const fa_simt_range ranges[] = {{"in", (const char *)global_in, sizeof memory.in, false, nullptr},
                                  {"out", (const char *)global_out, sizeof memory.out, true, nullptr},
                                  {"tensor", (const char *)tensor, sizeof tensor, false, nullptr},
                                  {"stored", (const char *)stored, sizeof stored, true, nullptr}};
  fa_simt_launch l = {};
  l.kernel = kernel;
  l.name = "toy";
  l.grid = {1, 1, 1};
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

static void expect_fault(const char *what, fa_simt_kernel kernel, fa_subject_state state, const char *words,
                         unsigned threads = N) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = run(kernel, seed, threads);
    char place[64];
    snprintf(place, sizeof place, "test_simt_sm90.cpp:%d", fault_line);
    CHECK_MSG(r.state == state && strstr(r.text, words) && strstr(r.text, place), "%s, seed %d: state %d: %s",
              what, (int)seed, r.state, r.text);
  }
}

enum { BAR = 32768 }; /* where barriers are */

/* ---- right kernels ---- */

static uint32_t swizzled(uint32_t address, int swizzle) {
  const uint32_t mask[] = {0, 7, 3, 1};
  return address ^ (address >> 7 & mask[swizzle]) << 4;
}

static void begin(int n_bars, uint32_t count) {
  if (thread_id() == 0) {
    for (int i = 0; i < n_bars; ++i) mbarrier_init(BAR + 8 * i, count);
    mbarrier_init_fence();
  }
  sync_block();
}

/* The box as it lies in shared memory, out again through another box. */
static void there_and_back(const void *) {
  begin(1, 1);
  const fa_tensor_map out = map_of(stored, width / 2, 16, map.bytes[offsetof(fa_tensor_box, swizzle)]);
  if (thread_id() == 0) {
    mbarrier_arrive_expect(BAR, 16 * width);
    tma_load(1024, &map, BAR, at[0], at[1], at[2], at[3]);
  }
  mbarrier_wait(BAR, 0);
  const int swizzle = map.bytes[offsetof(fa_tensor_box, swizzle)];
  bool right = true;
  for (int i = thread_id(); i < 16 * width / 4; i += N) {
    const uint32_t pair = load_shared4(swizzled(1024 + 4 * i, swizzle));
    for (int e = 0; e < 2; ++e) {
      const int c = at[0] + (4 * i % width) / 2 + e, r = at[1] + 4 * i / width;
      const bool exists = c >= 0 && c < COLS && r >= 0 && r < ROWS && at[2] < HEADS && at[3] < BATCH;
      right &= (pair >> 16 * e & 0xffff) == (exists ? tensor[at[3]][r][at[2]][c] : 0);
    }
  }
  store_global(global_out + thread_id(), right ? 1.0f : 0.0f);
  if (thread_id() != 0) return;
  tma_store(&out, 1024, at[0], at[1], at[2], at[3]);
  tma_store_commit();
  tma_store_wait_read<0>();
}

static void check_copies() {
  uint16_t n = 1;
  for (auto &b : tensor)
    for (auto &r : b)
      for (auto &h : r)
        for (auto &c : h) c = n++;
  const int places[][4] = {{0, 0, 0, 0},   {8, 3, 1, 1},  {32, 30, 0, 1},
                           {64, -5, 1, 0}, {0, 50, 0, 0}, {0, 0, 2, 0}};
  for (int swizzle = 0; swizzle < 4; ++swizzle)
    for (auto &place : places)
      for (uint64_t seed = 0; seed < 4; ++seed) {
        width = swizzle == 0 ? 48 : 256 >> swizzle;
        map = map_of(tensor, width / 2, 16, swizzle);
        memcpy(at, place, sizeof at);
        memset(stored, 0, sizeof stored);
        const fa_simt_report r = run(there_and_back, seed);
        CHECK_MSG(r.state == FA_SUBJECT_OK, "%s", r.text);
        for (int t = 0; t < N; ++t) CHECK(global_out[t] == 1.0f);
        int wrong = 0;
        for (int b = 0; b < BATCH; ++b)
          for (int i = 0; i < ROWS; ++i)
            for (int h = 0; h < HEADS; ++h)
              for (int c = 0; c < COLS; ++c) {
                const bool inside = b == at[3] && h == at[2] && i >= at[1] && i < at[1] + 16 && c >= at[0] &&
                                    c < at[0] + width / 2;
                wrong += stored[b][i][h][c] != (inside ? tensor[b][i][h][c] : 0);
              }
        CHECK(wrong == 0);
      }
}

/* Two stages between a producing and four consuming warps; every value passes once. */
static void ring(const void *) {
  const int t = thread_id(), warp = t / 32;
  if (t == 0)
    for (int s = 0; s < 2; ++s) {
      mbarrier_init(BAR + 8 * s, 1);
      mbarrier_init(BAR + 16 + 8 * s, 4);
    }
  sync_block();
  if (warp == 4) {
    if (t != 128) return;
    for (int i = 0; i < 10; ++i) {
      mbarrier_wait(BAR + 16 + 8 * (i % 2), i / 2 % 2 ^ 1);
      mbarrier_arrive_expect(BAR + 8 * (i % 2), 16 * width);
      tma_load(4096 * (i % 2), &map, BAR + 8 * (i % 2), 0, i, 0, 0);
    }
    return;
  }
  float sum = 0;
  for (int i = 0; i < 10; ++i) {
    mbarrier_wait(BAR + 8 * (i % 2), i / 2 % 2);
    sum += float(load_shared4(4096 * (i % 2)) & 0xffff);
    sync_warp();
    if (t % 32 == 0) mbarrier_arrive(BAR + 16 + 8 * (i % 2));
  }
  store_global(global_out + t, sum);
}

/* Turns by named barriers: two groups of 64 threads write the same word one after the other. */
static void turns(const void *) {
  const int t = thread_id(), group = t / 64;
  if (group == 1) named_arrive<128>(1);
  for (int i = 0; i < 5; ++i) {
    named_sync<128>(1 + group);
    if (t % 64 == 0) store_shared4(0, i == 0 && group == 0 ? 1 : load_shared4(0) + 1);
    named_arrive<128>(2 - group);
  }
  if (group == 1) return;
  named_sync<128>(1);
  store_global(global_out + t, float(load_shared4(0)));
}

/* Words side by side have nothing to do with one another: one is handed over while the other is being read.
 */
static void neighbours(const void *) {
  begin(1, 1);
  const int warp = thread_id() / 32;
  if (thread_id() == 0) {
    store_shared4(0, 1);
    store_shared4(4, 1);
  }
  sync_block();
  if (warp == 1 || warp == 2) {
    load_shared4(0);
    sync_warp();
    named_arrive<96>(1);
    load_shared4(4);
  } else if (warp == 0) {
    named_sync<96>(1);
    if (thread_id() == 0) store_shared4(0, 2);
  }
}

static void check_barriers() {
  width = 48;
  map = map_of(tensor, 24, 16, 0);
  float want = 0;
  for (int i = 0; i < 10; ++i) want += tensor[0][i][0][0];
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const fa_simt_report n = run(neighbours, seed);
    CHECK_MSG(n.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, n.text);
    const fa_simt_report r = run(ring, seed, 160);
    CHECK_MSG(r.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, r.text);
    for (int t = 0; t < 128; ++t) CHECK(global_out[t] == want);
    const fa_simt_report u = run(turns, seed);
    CHECK_MSG(u.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, u.text);
    for (int t = 0; t < 64; ++t) CHECK(global_out[t] == 10.0f);
  }
}

/* ---- products ---- */

/* Small integers by position, so that a permuted operand shows. */
static float a_of(int i, int k) {
  return float((i * 3 + k * 5 + i * k) % 13 - 6);
}
static float b_of(int k, int j) {
  return float((k * 7 + j * 2 + k * j) % 11 - 5);
}

enum { DEPTH = 32, WIDE = 128, A_AT = 0, B_AT = 16384 };
static int a_swizzle, b_swizzle, from_registers;

/* Element (row, depth) of an operand whose tile's rows are its rows (or its depth), in panels as wide as the
 * swizzle; without one, in cores of 8 rows x 16 bytes. */
static uint32_t element_at(int row, int depth, int rows, bool trans, int swizzle) {
  if (!swizzle) return (row / 8 * (DEPTH / 8) + depth / 8) * 128 + row % 8 * 16 + depth % 8 * 2;
  const int w = 256 >> swizzle, inner = trans ? row : depth, outer = trans ? depth : row,
            n_outer = trans ? DEPTH : rows;
  return swizzled(uint32_t(inner / (w / 2) * n_outer * w + outer * w + inner % (w / 2) * 2), swizzle);
}
static uint64_t operand(uint32_t tile, int rows, bool trans, int swizzle, int step) {
  if (!swizzle) return matrix_descriptor(tile + step * 256, 128, DEPTH / 8 * 128, 0);
  const int w = 256 >> swizzle;
  if (trans) return matrix_descriptor(tile + step * 16 * w, DEPTH * w, 8 * w, swizzle);
  const int in_panel = w / 32;
  return matrix_descriptor(tile + step / in_panel * rows * w + step % in_panel * 32, 16, 8 * w, swizzle);
}

/* One thread per row writes; 16-bit elements two at a time would need neighbours in depth, so by bytes of the
 * executor's memory through 4-byte words made of two elements where they adjoin. */
static void put(uint32_t tile, int rows, bool trans, int swizzle, bool is_a) {
  for (int i = thread_id(); i < rows * DEPTH / 2; i += N) {
    const int row = trans ? i * 2 % rows : i / (DEPTH / 2), depth = trans ? i * 2 / rows : i * 2 % DEPTH;
    const int row1 = row + (trans ? 1 : 0), depth1 = depth + (trans ? 0 : 1);
    const float x = is_a ? a_of(row, depth) : b_of(depth, row),
                y = is_a ? a_of(row1, depth1) : b_of(depth1, row1);
    store_shared4(tile + element_at(row, depth, rows, trans, swizzle), pack2(x, y, bf16()));
  }
}

template <int TRANS_A, int TRANS_B> static void multiply_groups(const void *) {
  float d[WIDE / 8][4];
  uint32_t a[DEPTH / 16][4];
  const int t = thread_id(), i = t / 32 * 16 + t % 32 / 4, c = t % 4 * 2;
  put(A_AT, 64, TRANS_A, a_swizzle, true);
  put(B_AT, WIDE, TRANS_B, b_swizzle, false);
  fence_async();
  sync_block();
  wgmma_fence();
  for (int step = 0; step < DEPTH / 16; ++step) {
    const uint64_t b = operand(B_AT, WIDE, TRANS_B, b_swizzle, step);
    for (int r = 0; r < 4; ++r)
      a[step][r] = pack2(a_of(i + r % 2 * 8, 16 * step + c + r / 2 * 8),
                         a_of(i + r % 2 * 8, 16 * step + c + r / 2 * 8 + 1), bf16());
    if (from_registers)
      wgmma_rs<TRANS_B>(d, a[step], b, step > 0, bf16());
    else
      wgmma_ss<TRANS_A, TRANS_B>(d, operand(A_AT, 64, TRANS_A, a_swizzle, step), b, step > 0, bf16());
    wgmma_commit();
  }
  const bool early = isnan(d[3][1]);
  wgmma_wait<0>(d);
  bool right = early;
  for (int n = 0; n < WIDE / 8; ++n)
    for (int e = 0; e < 4; ++e) {
      float want = 0;
      for (int k = 0; k < DEPTH; ++k) want += a_of(i + e / 2 * 8, k) * b_of(k, 8 * n + c + e % 2);
      right &= d[n][e] == want;
    }
  store_global(global_out + t, right ? 1.0f : 0.0f);
}

static void check_products() {
  const fa_simt_kernel kernels[2][2] = {{multiply_groups<0, 0>, multiply_groups<0, 1>},
                                        {multiply_groups<1, 0>, multiply_groups<1, 1>}};
  for (int trans_a = 0; trans_a < 2; ++trans_a)
    for (int trans_b = 0; trans_b < 2; ++trans_b)
      for (a_swizzle = trans_a; a_swizzle < 4; ++a_swizzle)
        for (b_swizzle = trans_b; b_swizzle < 4; ++b_swizzle)
          for (from_registers = 0; from_registers < 2; ++from_registers) {
            const fa_simt_report r = run(kernels[trans_a][trans_b], (uint64_t)a_swizzle);
            CHECK_MSG(r.state == FA_SUBJECT_OK, "%s", r.text);
            int wrong = 0;
            for (int t = 0; t < N; ++t) wrong += global_out[t] != 1.0f;
            CHECK_MSG(wrong == 0, "A %d %d, B %d %d, registers %d: %d threads wrong", trans_a, a_swizzle,
                      trans_b, b_swizzle, from_registers, wrong);
          }
}

/* ---- broken rules ---- */

static void load_without_wait(const void *) {
  begin(1, 1);
  if (thread_id() == 0) {
    mbarrier_arrive_expect(BAR, 16 * width);
    tma_load(1024, &map, BAR, 0, 0, 0, 0);
  }
  FAULT, load_shared4(1024);
}
static void load_waited_for_elsewhere(const void *) { /* the other barrier's load says nothing of this one */
  begin(2, 1);
  if (thread_id() == 0) {
    for (int i = 0; i < 2; ++i) {
      mbarrier_arrive_expect(BAR + 8 * i, 16 * width);
      tma_load(1024 + 4096 * i, &map, BAR + 8 * i, 0, 0, 0, 0);
    }
    mbarrier_wait(BAR, 0);
  }
  mbarrier_wait(BAR + 8, 0);
  if (thread_id() >= 32) FAULT, load_shared4(1024);
}
static void stage_overwritten(const void *) {
  begin(2, 1);
  for (int i = 0; i < 2; ++i) {
    if (thread_id() == 0) {
      mbarrier_arrive_expect(BAR + 8 * i, 16 * width);
      FAULT, tma_load(1024, &map, BAR + 8 * i, 0, 0, 0, 0);
    }
    mbarrier_wait(BAR + 8 * i, 0);
    if (thread_id() >= 32) load_shared4(1024);
  }
}
static void released_too_early(const void *) { /* no sync_warp between the lanes' reads and the arrival */
  if (thread_id() == 0) {
    mbarrier_init(BAR, 1);
    mbarrier_init(BAR + 8, 1);
  }
  store_shared4(4 * thread_id(), 1);
  sync_block();
  if (thread_id() < 32) {
    load_shared4(4 * (thread_id() ^ 1));
    if (thread_id() == 0) mbarrier_arrive(BAR);
  } else {
    mbarrier_wait(BAR, 0);
    if (thread_id() < 64) FAULT, store_shared4(4 * (thread_id() - 32), 2);
  }
}
static void fewer_bytes(const void *) {
  begin(1, 1);
  if (thread_id() == 0) {
    mbarrier_arrive_expect(BAR, 16 * width + 16);
    tma_load(1024, &map, BAR, 0, 0, 0, 0);
  }
  FAULT, mbarrier_wait(BAR, 0);
}
static void wrong_parity(const void *) {
  begin(1, 1);
  if (thread_id() == 0) mbarrier_arrive(BAR);
  mbarrier_wait(BAR, 0);
  FAULT, mbarrier_wait(BAR, 1);
}
static void no_barrier(const void *) {
  FAULT, mbarrier_wait(BAR + 64, 0);
}
static void used_before_init(const void *) {
  if (thread_id() == 0) mbarrier_init(BAR, N);
  FAULT, mbarrier_arrive(BAR);
}
static void too_many_arrivals(const void *) {
  begin(1, 1);
  if (thread_id() == 0) {
    mbarrier_arrive_expect(BAR, 16);
    FAULT, mbarrier_arrive(BAR);
  }
}
static void store_without_fence(const void *) {
  FAULT, store_shared4(1024 + 4 * thread_id(), 1);
  sync_block();
  if (thread_id() == 0) tma_store(&map, 1024, 0, 0, 0, 0);
}
static void store_still_reading(const void *) {
  for (int i = 0; i < 2; ++i) store_shared4(1024 + 4 * (thread_id() + N * i), 1);
  fence_async();
  sync_block();
  if (thread_id() == 0) {
    tma_store(&map, 1024, 0, 0, 0, 0);
    tma_store_commit();
    FAULT, store_shared4(1024, 2);
  }
}
static void store_at_end(const void *) {
  for (int i = 0; i < 2; ++i) store_shared4(1024 + 4 * (thread_id() + N * i), 1);
  fence_async();
  sync_block();
  if (thread_id() != 0) return;
  tma_store(&map, 1024, 0, 0, 0, 0);
  tma_store_commit();
}
static void load_at_end(const void *) {
  begin(1, 1);
  if (thread_id() != 0) return;
  mbarrier_arrive_expect(BAR, 16 * width);
  FAULT, tma_load(1024, &map, BAR, 0, 0, 0, 0);
}
static void misaligned_box(const void *) {
  begin(1, 1);
  if (thread_id() == 0) FAULT, tma_load(1024 + 64, &map, BAR, 0, 0, 0, 0);
}
static void named_counts_differ(const void *) {
  if (thread_id() < 32) FAULT, named_arrive<64>(3);
  if (thread_id() >= 32) FAULT, named_arrive<96>(3);
}
static void named_short(const void *) {
  if (thread_id() < 96) FAULT, named_sync<128>(3);
}

/* What a product needs, in shared memory or not fenced. */
static void operands(bool fenced) {
  put(A_AT, 64, false, 1, true);
  put(B_AT, WIDE, false, 1, false);
  if (fenced) fence_async();
  sync_block();
}
static void issue(float (&d)[WIDE / 8][4]) {
  wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, 0), 0, bf16());
  wgmma_commit();
}
static void product_without_fence(const void *) {
  float d[WIDE / 8][4];
  operands(false);
  FAULT, wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, 0), 0, bf16());
  wgmma_commit();
  wgmma_wait<0>(d);
}
static void operand_overwritten(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  issue(d);
  sync_block();
  FAULT, store_shared4(B_AT + 4 * thread_id(), 0);
  wgmma_wait<0>(d);
}
static void accumulator_written(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  FAULT, wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, 0), 0, bf16());
  wgmma_commit();
  d[1][2] *= 0.5f;
  wgmma_wait<0>(d);
}
static void registers_changed(const void *) {
  float d[WIDE / 8][4];
  uint32_t a[4] = {0, 0, 0, 0};
  operands(true);
  FAULT, wgmma_rs<0>(d, a, operand(B_AT, WIDE, false, 1, 0), 0, bf16());
  wgmma_commit();
  a[1] = 5;
  wgmma_wait<0>(d);
}
static void product_at_end(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  FAULT, wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, 0), 0, bf16());
}
static void lanes_differ(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  FAULT, wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, thread_id() % 2), 0,
                        bf16());
}

static void check_faults() {
  width = 48;
  map = map_of(tensor, 24, 16, 0);
  expect_fault("load without wait", load_without_wait, FA_SUBJECT_RACE, "shared offset 1024");
  expect_fault("load waited for elsewhere", load_waited_for_elsewhere, FA_SUBJECT_RACE,
               "read of shared offset");
  expect_fault("stage overwritten", stage_overwritten, FA_SUBJECT_RACE, "shared offset 1024");
  expect_fault("released too early", released_too_early, FA_SUBJECT_RACE, "not ordered");
  expect_fault("fewer bytes", fewer_bytes, FA_SUBJECT_DEADLOCK, "a wait for an mbarrier");
  expect_fault("wrong parity", wrong_parity, FA_SUBJECT_DEADLOCK, "a wait for an mbarrier");
  expect_fault("no barrier", no_barrier, FA_SUBJECT_CRASH, "no mbarrier was initialised");
  for (uint64_t seed = 0; seed < 20; ++seed) { /* or it is not there yet */
    const fa_simt_report r = run(used_before_init, seed);
    CHECK_MSG(r.state == FA_SUBJECT_RACE || r.state == FA_SUBJECT_CRASH, "%s", r.text);
  }
  expect_fault("too many arrivals", too_many_arrivals, FA_SUBJECT_RACE, "more than 1 arrivals");
  map = map_of(stored, 24, 16, 0);
  expect_fault("store without fence", store_without_fence, FA_SUBJECT_RACE, "no fence_async since");
  expect_fault("store still reading", store_still_reading, FA_SUBJECT_RACE, "may still read");
  fault_line = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = run(store_at_end, seed);
    CHECK_MSG(r.state == FA_SUBJECT_RACE && strstr(r.text, "ends while its bulk store"), "%s", r.text);
  }
  expect_fault("load at end", load_at_end, FA_SUBJECT_RACE, "nobody has waited for this bulk load");
  expect_fault("misaligned box", misaligned_box, FA_SUBJECT_CRASH, "not aligned to 128 bytes");
  expect_fault("named counts differ", named_counts_differ, FA_SUBJECT_DEADLOCK, "named barrier 3 of");
  expect_fault("named short", named_short, FA_SUBJECT_DEADLOCK, "a named barrier");
  expect_fault("product without fence", product_without_fence, FA_SUBJECT_RACE, "no fence_async since");
  expect_fault("operand overwritten", operand_overwritten, FA_SUBJECT_RACE, "may still read");
  expect_fault("accumulator written", accumulator_written, FA_SUBJECT_RACE, "wrote accumulator 6");
  expect_fault("registers changed", registers_changed, FA_SUBJECT_RACE, "changed this product's A registers");
  expect_fault("product at end", product_at_end, FA_SUBJECT_RACE, "this product is in flight");
  expect_fault("lanes differ", lanes_differ, FA_SUBJECT_DEADLOCK, "give wgmma different operands");
}

int main() {
  check_copies();
  check_barriers();
  check_products();
  check_faults();
  return check_done();
}
