/* The executor on correct toy kernels: they give the right results under every schedule, and reads of
 * unwritten memory are detected. */
#include "tests/simt/toy.h"

/* ---- correct kernels ---- */

/* Reverses through shared memory; loads with cp.async, two groups in flight. */
static void reverse(const void *) {
  const int t = thread_id();
  cp_async16(16 * t, global_in + 4 * t, true);
  cp_async_commit();
  cp_async16(2048 + 16 * t, global_in + 4 * t, false);
  cp_async_commit();
  cp_async_wait<1>();
  sync_block();
  const float x = first_float(load_shared16(16 * (N - 1 - t)));
  cp_async_wait<0>();
  sync_block();
  store_global(global_out + t, x + first_float(load_shared16(2048 + 16 * (N - 1 - t))));
}

/* Sums over the warp by shuffles, then over warps through shared memory; early exits do not hang the barrier.
 */
static void sum(const void *) {
  const int t = thread_id();
  float x = load_global(global_in + 4 * t);
  for (int m = 16; m > 0; m /= 2) x += shfl_xor(x, m);
  if (t % 32 != 0) return;
  store_shared4(t / 32 * 4, bits_of(x));
  sync_block();
  if (t != 0) return;
  const vec4 v = load_shared16(0);
  store_global(global_out, float_of(v.x) + float_of(v.y) + float_of(v.z) + float_of(v.w));
}

/* Which element of which matrix arrives where. */
static void matrices(const void *) {
  const int lane = thread_id();
  uint32_t row[4], r[4], rt[4];
  for (int i = 0; i < 4; ++i) row[i] = (lane * 8u + 2 * i) | (lane * 8u + 2 * i + 1) << 16;
  store_shared16(16 * lane, vec4{row[0], row[1], row[2], row[3]});
  sync_warp();
  ldmatrix_x4(r, 16 * lane);
  ldmatrix_x4_trans(rt, 16 * lane);
  bool right = true;
  for (uint32_t m = 0; m < 4; ++m) {
    const uint32_t i = lane / 4, j = lane % 4 * 2, base = 64 * m;
    right &= r[m] == ((base + 8 * i + j) | (base + 8 * i + j + 1) << 16);
    right &= rt[m] == ((base + 8 * j + i) | (base + 8 * (j + 1) + i) << 16);
  }
  store_global(global_out + lane, right ? 1.0f : 0.0f);
}

/* a[i][k] = i + k, b[k][j] = k - j: small integers, the sum known. */
static void multiply(const void *) {
  const int lane = thread_id(), g = lane / 4, c = lane % 4 * 2;
  uint32_t a[4], b[2];
  float d[4] = {1, 1, 1, 1};
  for (int r = 0; r < 4; ++r) {
    const int i = g + r % 2 * 8, k = c + r / 2 * 8;
    a[r] = pack2(float(i + k), float(i + k + 1), f16());
  }
  for (int r = 0; r < 2; ++r) b[r] = pack2(float(c + 8 * r - g), float(c + 8 * r + 1 - g), f16());
  mma(d, a, b, f16());
  bool right = true;
  for (int e = 0; e < 4; ++e) {
    const int i = g + e / 2 * 8, j = c + e % 2;
    float want = 1;
    for (int k = 0; k < 16; ++k) want += float((i + k) * (k - j));
    right &= d[e] == want;
  }
  store_global(global_out + lane, right ? 1.0f : 0.0f);
}

static void block_numbers(const void *) {
  const unsigned b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (thread_id() == 0) store_global(global_out + b, float(b));
}

static void check_right_kernels() {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report rev = launch(reverse, seed);
    CHECK_MSG(rev.state == FA_SUBJECT_OK, "%s", rev.text);
    for (int t = 0; t < N; ++t) CHECK(global_out[t] == global_in[4 * (N - 1 - t)]);
    const fa_simt_report r = launch(sum, seed);
    CHECK_MSG(r.state == FA_SUBJECT_OK && global_out[0] == 4.0f * N * (N - 1) / 2, "%s %g", r.text,
              global_out[0]);
    const fa_simt_kernel warp[] = {matrices, multiply};
    for (fa_simt_kernel k : warp) {
      const fa_simt_report w = launch(k, seed, 32);
      CHECK_MSG(w.state == FA_SUBJECT_OK, "%s", w.text);
      for (int t = 0; t < 32; ++t) CHECK(global_out[t] == 1.0f);
    }
    for (int n_threads = 1; n_threads <= 3; ++n_threads) {
      memset(global_out, 0, sizeof memory.out);
      CHECK(launch(block_numbers, seed, 32, 0, {3, 5, 7}, n_threads).state == FA_SUBJECT_OK);
      for (int b = 0; b < 3 * 5 * 7; ++b) CHECK(global_out[b] == float(b));
    }
  }
}

/* ---- unwritten memory ---- */

static void uninitialised(const void *) {
  if (thread_id() != 3) store_shared4(16 * thread_id() + 4, 1); /* one word of four */
  FAULT, load_shared16(16 * thread_id());
}
static void uninitialised_matrix(const void *) {
  uint32_t r[4];
  if (thread_id() != 40) store_shared16(16 * thread_id(), vec4{1, 2, 3, 4});
  sync_block();
  FAULT, ldmatrix_x4(r, 16 * thread_id());
}
/* What an earlier block left in shared memory must not be visible to the next one. */
static void left_by_another_block(const void *) {
  if (blockIdx.x == 0) store_shared4(4 * thread_id(), 1);
  sync_block();
  FAULT, load_shared4(4 * thread_id());
}
static void zeros_are_written(const void *) {
  cp_async16(16 * thread_id(), global_in, false);
  cp_async_commit();
  cp_async_wait<0>();
  store_global(global_out + thread_id(), first_float(load_shared16(16 * thread_id())));
}

static void write_scratch(const void *) {
  if (thread_id() != N - 1) store_global(scratch + thread_id(), 2.0f);
}
static void read_scratch(const void *) {
  const int t = thread_id();
  if (t != N - 1) store_global(global_out + t, load_global(scratch + t));
}
static void add_to_scratch(const void *) {
  const float by[4] = {1, 1, 1, 1};
  FAULT, atomic_add4(scratch + 4 * (thread_id() / 4), by);
}
static void read_scratch_too_far(const void *) {
  FAULT, load_global(scratch + thread_id());
}

static void check_unwritten() {
  expect("uninitialised", uninitialised, FA_SUBJECT_RACE, "that nobody has written");
  expect("uninitialised matrix", uninitialised_matrix, FA_SUBJECT_RACE,
         "read of shared offset 640 that nobody");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = launch(left_by_another_block, seed, N, 4096, {2, 1, 1});
    CHECK_MSG(r.state == FA_SUBJECT_RACE && r.line == fault_line && strstr(r.text, "nobody has written") &&
                  strstr(r.text, "block (1,0,0)"),
              "%s", r.text);
    CHECK(launch(zeros_are_written, seed).state == FA_SUBJECT_OK && global_out[5] == 0);
    memset(scratch_written, 0, sizeof scratch_written);
    expect("add to scratch", add_to_scratch, FA_SUBJECT_RACE, "of buffer scratch that nobody has written");
    CHECK(launch(write_scratch, seed).state == FA_SUBJECT_OK);
    const fa_simt_report read = launch(read_scratch, seed); /* written by the launch before */
    CHECK_MSG(read.state == FA_SUBJECT_OK && global_out[7] == 2, "%s", read.text);
    expect("read scratch", read_scratch_too_far, FA_SUBJECT_RACE,
           "read of byte 508 of buffer scratch that nobody");
  }
}

/* ---- schedules ---- */

static int order[N], n_ordered;
static void who_runs(const void *) {
  order[n_ordered++] = thread_id();
}

/* The plain schedule is 0, 1, 2...; a seed always gives the same order, and different seeds different
 * ones. */
static void check_fiber_order() {
  int last[N];
  for (int t = 0; t < N; ++t) last[t] = t;
  n_ordered = 0;
  CHECK(launch(who_runs, 0).state == FA_SUBJECT_OK && n_ordered == N && !memcmp(order, last, sizeof order));
  for (uint64_t seed = 1; seed < 20; ++seed) {
    n_ordered = 0;
    CHECK(launch(who_runs, seed).state == FA_SUBJECT_OK && n_ordered == N);
    CHECK(memcmp(order, last, sizeof order) != 0);
    memcpy(last, order, sizeof order);
    n_ordered = 0;
    CHECK(launch(who_runs, seed).state == FA_SUBJECT_OK && !memcmp(order, last, sizeof order));
  }
}

/* Reads the destination without the executor's knowledge, which would report the read; the source changes
 * meanwhile. */
static int n_poisoned, n_early, n_late;
static void copy_in_flight(const void *) {
  const int t = thread_id();
  if (t >= N / 4) return;
  float *const source = global_out + 4 * t;
  for (int i = 0; i < 4; ++i) store_global(source + i, 1.0f);
  cp_async16(16 * t, source, true);
  cp_async_commit();
  const char *const raw = fa_simt_current->shared + 16 * t;
  uint16_t half;
  memcpy(&half, raw, sizeof half);
  n_poisoned += half == FA_POISON_IN_FLIGHT;
  for (int i = 0; i < 4; ++i) store_global(source + i, 3.0f);
  cp_async_wait<0>();
  const float x = first_float(load_shared16(16 * t));
  n_early += x == 1.0f;
  n_late += x == 3.0f;
}

/* In the plain schedule a copy completes at its wait, when its source is read; with a seed some complete at
 * once. */
static void check_completion() {
  int early = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    n_poisoned = n_early = n_late = 0;
    CHECK(launch(copy_in_flight, seed).state == FA_SUBJECT_OK);
    CHECK(n_early + n_late == N / 4 && n_poisoned == n_late);
    CHECK(seed ? n_early > 0 && n_late > 0 : n_early == 0);
    early += n_early;
  }
  CHECK(early > 19 * N / 4 / 3 && early < 19 * N / 4 * 2 / 3);
}

/* Blocks 3 and 5 fail: block 3 is reported, whatever the number of threads. */
static void check_launches() {
  fa_simt_launch l = {};
  fa_simt_report r;
  fa_error err;
  l.kernel = block_numbers;
  l.name = "toy";
  l.n_threads = 1;
  l.grid = {1, 1, 1};
  l.block = {33, 1, 1};
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT);
  l.block = {2048, 1, 1};
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT);
  l.block = {32, 1, 1};
  l.grid = {0, 1, 1};
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT);
  l.grid = {1, 70000, 1};
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT);
  l.grid = {1, 1, 1};
  l.shared_bytes = 1 << 20;
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT);
}

int main() {
  for (int i = 0; i < 4 * N; ++i) global_in[i] = float(i);
  check_right_kernels();
  check_unwritten();
  check_fiber_order();
  check_completion();
  check_launches();
  return check_done();
}
