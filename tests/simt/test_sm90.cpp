/* The executor's bulk copies, barriers in shared memory and warpgroup products: correct kernels give the
 * right numbers under every schedule. */
#include "tests/simt/sm90.h"

/* ---- copies and barriers ---- */

static fa_tensor_map map;
static int width, at[4]; /* bytes of the box's rows; its first element */

/* Copies the box into shared memory and out again through another box. */
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

/* Stores a box of 8 columns of which `exist` are the tensor's. */
static int exist;
static void store_part_of_chunk(const void *) {
  fa_tensor_map out = map_of(stored, 8, 16, 0);
  const uint64_t cols = exist;
  memcpy(out.bytes + offsetof(fa_tensor_box, size), &cols, sizeof cols);
  for (int i = thread_id(); i < 16 * 8 / 2; i += N) store_shared4(1024 + 4 * i, 0x00010001);
  fence_async();
  sync_block();
  if (thread_id() != 0) return;
  tma_store(&out, 1024, 0, 0, 0, 0);
  tma_store_commit();
  tma_store_wait_read<0>();
}

/* A device stores the 16 bytes within which the tensor ends. */
static void check_whole_chunks() {
  for (exist = 1; exist <= 8; ++exist) {
    memset(stored, 0, sizeof stored);
    CHECK(run(store_part_of_chunk, 1).state == FA_SUBJECT_OK);
    int n = 0;
    for (int c = 0; c < COLS; ++c) n += stored[0][0][0][c];
    CHECK_MSG(n == 8, "of %d columns %d were written", exist, n);
  }
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

/* A pipeline of two stages between a producer and four consumer warps; every value passes once. */
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

/* Takes turns by named barriers: two groups of 64 threads write the same word one after the other. */
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

/* Adjacent words are independent: one is handed over while the other is being read. */
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

/* ---- matrices ---- */

/* Each warp stores four matrices into rows of its own, whose words tell where they come from. */
static void matrices_stored(const void *) {
  const uint32_t lane = thread_id() % 32, row = 16 * thread_id();
  uint32_t r[4];
  for (uint32_t m = 0; m < 4; ++m) r[m] = m << 16 | lane;
  stmatrix_x4(row, r);
  sync_warp();
  bool right = true;
  for (uint32_t i = 0; i < 4; ++i)
    right &= load_shared4(row + 4 * i) == (lane / 8 << 16 | (4 * (lane % 8) + i));
  store_global(global_out + thread_id(), right ? 1.0f : 0.0f);
}

static void check_matrices() {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const fa_simt_report r = run(matrices_stored, seed);
    CHECK_MSG(r.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, r.text);
    for (int t = 0; t < N; ++t) CHECK(global_out[t] == 1.0f);
  }
}

/* ---- products ---- */

static int a_swizzle, b_swizzle, from_registers;

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

/* Elements of 8 bits: two steps of a depth of 64 in rows of 64 bytes, with 64-byte swizzle. */
enum { DEPTH_OF_BYTES = 64 };

static uint32_t four_bytes(bool is_a, int row, int depth) {
  float x[4];
  for (int e = 0; e < 4; ++e) x[e] = is_a ? a_of(row, depth + e) : b_of(depth + e, row);
  return pack4(x[0], x[1], x[2], x[3], e4m3());
}

static void put_bytes(uint32_t tile, int rows, bool is_a) {
  for (int i = thread_id(); i < rows * DEPTH_OF_BYTES / 4; i += N) {
    const int row = i / (DEPTH_OF_BYTES / 4), depth = i % (DEPTH_OF_BYTES / 4) * 4;
    store_shared4(tile + swizzled(uint32_t(row * 64 + depth), FA_SWIZZLE_64), four_bytes(is_a, row, depth));
  }
}

static void multiply_bytes(const void *) {
  float d[WIDE / 8][4];
  uint32_t a[DEPTH_OF_BYTES / 32][4];
  const int t = thread_id(), i = t / 32 * 16 + t % 32 / 4, c = t % 4;
  put_bytes(A_AT, 64, true);
  put_bytes(B_AT, WIDE, false);
  fence_async();
  sync_block();
  wgmma_fence();
  for (int step = 0; step < DEPTH_OF_BYTES / 32; ++step) {
    const uint64_t b = matrix_descriptor(B_AT + 32 * step, 16, 512, FA_SWIZZLE_64);
    for (int r = 0; r < 4; ++r) a[step][r] = four_bytes(true, i + r % 2 * 8, 32 * step + 4 * c + r / 2 * 16);
    if (from_registers)
      wgmma_rs<0>(d, a[step], b, step > 0, e4m3());
    else
      wgmma_ss<0, 0>(d, matrix_descriptor(A_AT + 32 * step, 16, 512, FA_SWIZZLE_64), b, step > 0, e4m3());
    wgmma_commit();
  }
  const bool early = isnan(d[3][1]);
  wgmma_wait<0>(d);
  bool right = early;
  for (int n = 0; n < WIDE / 8; ++n)
    for (int e = 0; e < 4; ++e) {
      float want = 0;
      for (int k = 0; k < DEPTH_OF_BYTES; ++k)
        want += a_of(i + e / 2 * 8, k) * b_of(k, 8 * n + 2 * c + e % 2);
      right &= d[n][e] == want;
    }
  store_global(global_out + t, right ? 1.0f : 0.0f);
}

/* A kernel that multiplies, with A in shared memory and in registers, and says of every thread whether its part is right. */
static void check_products_of(fa_simt_kernel multiply) {
  for (from_registers = 0; from_registers < 2; ++from_registers) {
    const fa_simt_report r = run(multiply, (uint64_t)from_registers);
    CHECK_MSG(r.state == FA_SUBJECT_OK, "%s", r.text);
    for (int t = 0; t < N; ++t) CHECK(global_out[t] == 1.0f);
  }
}

/* Floats: a row of 128 bytes has four steps. What is below tf32 is not multiplied. */
enum { DEPTH_OF_FLOATS = 32 };

static void put_floats(uint32_t tile, int rows, bool is_a) {
  for (int i = thread_id(); i < rows * DEPTH_OF_FLOATS; i += N) {
    const int row = i / DEPTH_OF_FLOATS, depth = i % DEPTH_OF_FLOATS;
    const uint32_t x = float_bits(is_a ? a_of(row, depth) : b_of(depth, row));
    store_shared4(tile + swizzled(uint32_t(row * 128 + depth * 4), FA_SWIZZLE_128), x == 0 ? x : x + 0x1fffu);
  }
}

static void multiply_floats(const void *) {
  float d[WIDE / 8][4];
  uint32_t a[DEPTH_OF_FLOATS / 8][4];
  const int t = thread_id(), i = t / 32 * 16 + t % 32 / 4, c = t % 4;
  put_floats(A_AT, 64, true);
  put_floats(B_AT, WIDE, false);
  fence_async();
  sync_block();
  wgmma_fence();
  for (int step = 0; step < DEPTH_OF_FLOATS / 8; ++step) {
    const uint64_t b = matrix_descriptor(B_AT + 32 * step, 16, 1024, FA_SWIZZLE_128);
    for (int r = 0; r < 4; ++r) a[step][r] = float_bits(a_of(i + r % 2 * 8, 8 * step + c + r / 2 * 4));
    if (from_registers)
      wgmma_rs<0>(d, a[step], b, step > 0, f32());
    else
      wgmma_ss<0, 0>(d, matrix_descriptor(A_AT + 32 * step, 16, 1024, FA_SWIZZLE_128), b, step > 0, f32());
    wgmma_commit();
  }
  const bool early = isnan(d[3][1]);
  wgmma_wait_operands<1>();
  const bool still = isnan(d[3][1]);
  wgmma_wait<0>(d);
  bool right = early && still;
  for (int n = 0; n < WIDE / 8; ++n)
    for (int e = 0; e < 4; ++e) {
      float want = 0;
      for (int k = 0; k < DEPTH_OF_FLOATS; ++k)
        want += a_of(i + e / 2 * 8, k) * b_of(k, 8 * n + 2 * c + e % 2);
      right &= d[n][e] == want;
    }
  store_global(global_out + t, right ? 1.0f : 0.0f);
}

static void check_bytes() {
  CHECK(pack4(1.0f, -448.0f, 1e9f, 0x1p-9f, e4m3()) == 0x017efe38u);
  CHECK(pick_bytes(0x33221100u, 0x77665544u, 0x7520u) == 0x77552200u);
}

int main() {
  check_bytes();
  check_products_of(multiply_bytes);
  check_products_of(multiply_floats);
  check_matrices();
  check_copies();
  check_whole_chunks();
  check_barriers();
  check_products();
  return check_done();
}
