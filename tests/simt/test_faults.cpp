/* The executor on toy kernels with one deliberate fault each: it reports the right kind of fault, with its
 * source line. */
#include "tests/simt/toy.h"

static void missing_wait(const void *) {
  const int t = thread_id();
  cp_async16(16 * t, global_in + 4 * t, true);
  cp_async_commit();
  sync_block();
  FAULT, store_global(global_out + t, first_float(load_shared16(16 * t)));
}

static void wait_off_by_one(const void *) {
  const int t = thread_id();
  for (int stage = 0; stage < 2; ++stage) {
    cp_async16(2048 * stage + 16 * t, global_in + 4 * t, true);
    cp_async_commit();
  }
  cp_async_wait<1>();
  sync_block();
  load_shared16(16 * t);
  FAULT, load_shared16(2048 + 16 * t);
}

static void missing_commit(const void *) {
  const int t = thread_id();
  cp_async16(16 * t, global_in + 4 * t, true);
  cp_async_wait<0>();
  FAULT, load_shared16(16 * t);
}

/* A copy is visible to its own thread after the wait, to others only after a barrier. */
static void wait_without_barrier(const void *) {
  const int t = thread_id();
  cp_async16(16 * t, global_in + 4 * t, true);
  cp_async_commit();
  cp_async_wait<0>();
  load_shared16(16 * t);
  FAULT, load_shared16(16 * (t ^ 64));
}

static void missing_barrier(const void *) {
  const int t = thread_id();
  store_shared4(4 * t, 1);
  FAULT, load_shared16(16 * (t / 4 ^ 16));
}

/* The tile is refilled while other warps may still be reading it. */
static void refill_too_early(const void *) {
  const int t = thread_id();
  store_shared4(4 * t, 1);
  sync_block();
  load_shared16((t & 31) * 16);
  FAULT, store_shared4(4 * t, 2);
}

/* Within a warp, a shuffle does not order memory accesses; __syncwarp does. */
static void shuffle_is_no_fence(const void *) {
  const int t = thread_id();
  if (t >= 32) return;
  store_shared4(4 * t, 1);
  shfl_xor(1.0f, 1);
  FAULT, load_shared16(16 * (t / 4 ^ 1));
}

static void divergent_barrier(const void *) {
  if (thread_id() < 64)
    sync_block();
  else
    FAULT, sync_block(); /* or the other access, whichever came second */
}

static void deadlock(const void *) {
  if (thread_id() < 32) {
    if (thread_id() != 5) sync_warp(); /* lane 5 waits for the block, its warp for lane 5 */
  }
  sync_block();
}

static void warp_mismatch(const void *) {
  if (thread_id() % 32 < 16)
    sync_warp();
  else
    shfl_xor(1.0f, 1);
}

static void lane_left(const void *) {
  if (thread_id() == 7) return;
  FAULT, shfl_xor(1.0f, 1);
}

static void write_past_end(const void *) {
  FAULT, store_global(global_out + thread_id() + 1, 1.0f);
}
static void read_before_start(const void *) {
  FAULT, load_global(global_in + thread_id() - 1);
}
static void write_input(const void *) {
  FAULT, store_global(global_in + thread_id(), 1.0f);
}
static void read_wild(const void *) {
  FAULT, load_global(reinterpret_cast<const float *>(0x1000));
}
static void copy_past_end(const void *) {
  FAULT, cp_async16(0, global_in + 4 * N, true);
}
static void copy_nothing(const void *) {
  cp_async16(16 * thread_id(), global_in + 4 * N, false);
}
static void shared_past_end(const void *) {
  FAULT, store_shared4(4096 - 4 * N + 4 * thread_id() + 4, 1);
}
static void shared_far(const void *) {
  FAULT, load_shared16(0xfffffff0u);
}
static void matrix_past_end(const void *) {
  uint32_t r[4];
  for (int i = 0; i < 2; ++i) store_shared16(16 * (N * i + thread_id()), vec4{0, 0, 0, 0});
  sync_block();
  FAULT, ldmatrix_x4(r, 4096 - 16 * 31 + 16 * (thread_id() % 32));
}
static void misaligned_global(const void *) {
  FAULT, load_global(reinterpret_cast<const vec4 *>(global_in + 1));
}
static void misaligned_copy_of_nothing(const void *) {
  FAULT, cp_async16(16 * thread_id(), global_in + 1, false);
}
static void misaligned_shared(const void *) {
  FAULT, load_shared16(8);
}

static void two_blocks_fail(const void *) {
  if (blockIdx.x == 3 || blockIdx.x == 5) store_global(global_out + N, 1.0f);
}

static void check_wrong_kernels() {
  expect("missing wait", missing_wait, FA_SUBJECT_RACE, "wait is missing");
  expect("wait_group off by one", wait_off_by_one, FA_SUBJECT_RACE, "wait is missing");
  expect("missing commit", missing_commit, FA_SUBJECT_RACE, "wait is missing");
  expect("wait without barrier", wait_without_barrier, FA_SUBJECT_RACE, "");
  expect("missing barrier", missing_barrier, FA_SUBJECT_RACE, "not ordered");
  expect("refill too early", refill_too_early, FA_SUBJECT_RACE, "not ordered");
  expect("shuffle is no fence", shuffle_is_no_fence, FA_SUBJECT_RACE, "not ordered");
  expect("lane left", lane_left, FA_SUBJECT_DEADLOCK, "31 thread(s)");
  expect("write past end", write_past_end, FA_SUBJECT_OOB, "buffer out");
  expect("read before start", read_before_start, FA_SUBJECT_OOB, "at byte -4 of buffer in");
  expect("write input", write_input, FA_SUBJECT_OOB, "read-only buffer in");
  expect("read wild", read_wild, FA_SUBJECT_OOB, "outside every buffer");
  expect("copy past end", copy_past_end, FA_SUBJECT_OOB, "buffer in");
  expect("shared past end", shared_past_end, FA_SUBJECT_OOB, "4096 bytes");
  expect("shared far", shared_far, FA_SUBJECT_OOB, "4096 bytes");
  expect("matrix past end", matrix_past_end, FA_SUBJECT_OOB, "ldmatrix");
  expect("misaligned global", misaligned_global, FA_SUBJECT_CRASH, "misaligned");
  expect("misaligned copy of nothing", misaligned_copy_of_nothing, FA_SUBJECT_CRASH, "misaligned");
  expect("misaligned shared", misaligned_shared, FA_SUBJECT_CRASH, "misaligned");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fa_simt_report r = launch(divergent_barrier, seed);
    CHECK_MSG(r.state == FA_SUBJECT_DEADLOCK && strstr(r.text, "barrier divergence"), "%s", r.text);
    CHECK_MSG(r.line == fault_line || r.line == fault_line - 2, "line %d: %s", r.line, r.text);
    r = launch(deadlock, seed);
    CHECK_MSG(r.state == FA_SUBJECT_DEADLOCK && strstr(r.text, "31 thread(s), first 0, in __syncwarp") &&
                  strstr(r.text, "97 thread(s), first 5, in __syncthreads"),
              "%s", r.text);
    r = launch(warp_mismatch, seed);
    CHECK_MSG(r.state == FA_SUBJECT_DEADLOCK && strstr(r.text, "warp divergence"), "%s", r.text);
    CHECK(launch(copy_nothing, seed).state == FA_SUBJECT_OK);
    r = launch(two_blocks_fail, seed, 32, 0, {8, 1, 1}, 3);
    CHECK_MSG(r.state == FA_SUBJECT_OOB && strstr(r.text, "block (3,0,0)"), "%s", r.text);
  }
}

int main() {
  for (int i = 0; i < 4 * N; ++i) global_in[i] = float(i);
  check_wrong_kernels();
  return check_done();
}
