/* Two blocks as a cluster on the executor: each has its own shared memory, barriers and descriptors, and what
 * they send each other arrives; every broken rule is reported. */
#include "tests/simt/sm90.h"

enum { HERE = 0, THERE = 4096, FULL = BAR, EMPTY = BAR + 16 };

static void set_up() {
  if (thread_id() == 0) {
    mbarrier_init(FULL + shared_base(), 1);
    mbarrier_init(EMPTY + shared_base(), 1);
    mbarrier_init_fence();
  }
  cluster_sync();
}

static uint32_t own(uint32_t offset) {
  return shared_base() + offset;
}
static uint32_t others(uint32_t offset) {
  return cluster_address(own(offset), cluster_rank() ^ 1);
}

/* Both send each other their numbers, round after round; optionally with a part of the protocol missing. */
enum { ALL, NO_FENCE, NO_EMPTY, NO_EXPECT, NO_LAST_SYNC };
template <int PART> static void exchange(const void *) {
  const int t = thread_id(), warp = t / 32, rank = cluster_rank();
  float sum = 0;
  set_up();
  for (int i = 0; i < 3; ++i) {
    if (warp == 0) {
      if (PART != NO_EMPTY && i > 0) mbarrier_wait(own(EMPTY), (i - 1) % 2);
      store_shared4(own(HERE + 4 * t), static_cast<uint32_t>(1000 * i + 100 * rank + t));
      if (PART != NO_FENCE) fence_async();
      sync_warp();
      if (t == 0) FAULT, copy_shared_to_cluster(others(THERE), own(HERE), 128, others(FULL));
    }
    if (warp == 1) {
      if (PART != NO_EXPECT && t == 32) mbarrier_arrive_expect(own(FULL), 128);
      mbarrier_wait(own(FULL), i % 2);
      const uint32_t got = load_shared4(own(THERE + 4 * (t - 32)));
      if (got == static_cast<uint32_t>(1000 * i + 100 * (rank ^ 1) + t - 32)) sum += 1;
      sync_warp();
      if (t == 32) mbarrier_arrive_at(others(EMPTY));
    }
  }
  if (warp == 1) store_global(global_out + 64 * rank + t - 32, sum);
  if (PART != NO_LAST_SYNC) cluster_sync();
}

/* The same named barrier and the same descriptor in both blocks are independent. */
static void apart(const void *) {
  const int t = thread_id(), rank = cluster_rank();
  float d[8][4];
  set_up();
  for (int i = t; i < 64 * 8; i += N) { /* A: ones; B: the rank. 64 rows of 16 elements, no swizzle */
    store_shared4(own(HERE + 4 * i), pack2(1, 1, bf16()));
    store_shared4(own(THERE + 4 * i), pack2(float(rank), float(rank), bf16()));
  }
  fence_async();
  named_sync<N>(1);
  wgmma_fence();
  wgmma_ss<0, 0>(d, matrix_descriptor(own(HERE), 128, 256, 0), matrix_descriptor(own(THERE), 128, 256, 0), 0,
                 bf16());
  wgmma_commit();
  wgmma_wait<0>(d);
  if (t < 64) store_global(global_out + 64 * rank + t, d[7][3]);
  if (rank == 0) named_sync<N>(2); /* of this block alone */
}

/* Each block loads half of a tile into both, round after round, as soon as both have read the last one. */
enum { HALF = 1024, TILE = 2 * HALF }; /* bytes: 8 rows of 64 elements */
static fa_tensor_map rows_of_tensor;
enum { OWN_EMPTY_ALONE = NO_LAST_SYNC + 1, HALF_LOST, EXPECT_OWN_HALF };
template <int PART> static void load_halves(const void *) {
  const int t = thread_id(), warp = t / 32, rank = cluster_rank();
  float sum = 0;
  if (t == 0) {
    mbarrier_init(own(FULL), 1);
    mbarrier_init(own(EMPTY), PART == OWN_EMPTY_ALONE ? 1 : 2);
    mbarrier_init_fence();
  }
  cluster_sync();
  for (int i = 0; i < 4; ++i) {
    if (t == 0) {
      if (i > 0) mbarrier_wait(own(EMPTY), (i - 1) % 2);
      mbarrier_arrive_expect(own(FULL), PART == EXPECT_OWN_HALF ? HALF : TILE);
      if (PART == HALF_LOST)
        FAULT,
            tma_load(own(HERE + rank * HALF), &rows_of_tensor, own(FULL), 0, 16 * (i % 2) + 8 * rank, 0, 0);
      else
        FAULT, tma_load_both(own(HERE + rank * HALF), &rows_of_tensor, own(FULL), 0, 16 * (i % 2) + 8 * rank,
                             0, 0);
    }
    if (warp == 1) {
      mbarrier_wait(own(FULL), i % 2);
      for (int row = 0; row < 16; ++row) {
        const uint32_t at = swizzled(HERE + row * 128 + (t - 32) * 4, FA_SWIZZLE_128);
        uint32_t want;
        memcpy(&want, &tensor[0][16 * (i % 2) + row][0][2 * (t - 32)], 4);
        sum += load_shared4(own(at)) == want;
      }
      sync_warp();
      if (t == 32) {
        mbarrier_arrive(own(EMPTY));
        if (PART != OWN_EMPTY_ALONE) mbarrier_arrive_at(others(EMPTY));
      }
    }
  }
  if (warp == 1) store_global(global_out + 64 * rank + t - 32, sum);
  if (PART != NO_LAST_SYNC) cluster_sync();
}

static void test_halves(void) {
  int n_seen = 0;
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLS; ++j) tensor[0][i][0][j] = (uint16_t)(COLS * i + j);
  rows_of_tensor = map_of(tensor, 64, 8, FA_SWIZZLE_128);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    memset(memory.out, 0, sizeof memory.out);
    const fa_simt_report r = run(load_halves<ALL>, seed, 64, 65536, 2);
    CHECK_MSG(r.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, r.text);
    for (int t = 0; t < 32; ++t)
      CHECK_MSG(global_out[t] == 64.0f && global_out[64 + t] == 64.0f, "seed %d, thread %d: %g, %g",
                (int)seed, t, global_out[t], global_out[64 + t]);
    /* the other block is still reading, nobody loads the other half, or it arrives for a phase that is
     * over */
    CHECK(run(load_halves<OWN_EMPTY_ALONE>, seed, 64, 65536, 2).state == FA_SUBJECT_RACE);
    CHECK(run(load_halves<HALF_LOST>, seed, 64, 65536, 2).state == FA_SUBJECT_DEADLOCK);
    CHECK(run(load_halves<EXPECT_OWN_HALF>, seed, 64, 65536, 2).state != FA_SUBJECT_OK);
    const fa_simt_report e = run(load_halves<NO_LAST_SYNC>, seed, 64, 65536, 2);
    CHECK(e.state == FA_SUBJECT_OK || (e.state == FA_SUBJECT_RACE && strstr(e.text, "that has ended")));
    n_seen += e.state != FA_SUBJECT_OK;
  }
  CHECK_MSG(n_seen > 10, "a block that ended too early was seen %d times of 60", n_seen);
}

static void whole_block_only(const void *) {
  FAULT, sync_block();
}
static void others_memory(const void *) {
  set_up();
  if (cluster_rank() == 0 && thread_id() == 0) FAULT, store_shared4(others(HERE), 1);
  cluster_sync();
}
static void beyond_own(const void *) {
  set_up();
  if (cluster_rank() == 0 && thread_id() == 0) FAULT, store_shared4(own(65536), 1);
  cluster_sync();
}
static void odd_bytes(const void *) {
  set_up();
  if (thread_id() == 0) FAULT, copy_shared_to_cluster(others(THERE), own(HERE), 120, others(FULL));
  cluster_sync();
}

int main() {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    memset(memory.out, 0, sizeof memory.out);
    const fa_simt_report r = run(exchange<ALL>, seed, 64, 65536, 2);
    CHECK_MSG(r.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, r.text);
    for (int t = 0; t < 32; ++t)
      CHECK_MSG(global_out[t] == 3.0f && global_out[64 + t] == 3.0f, "seed %d, thread %d: %g, %g", (int)seed,
                t, global_out[t], global_out[64 + t]);
    const fa_simt_report a = run(apart, seed, N, 65536, 2);
    CHECK_MSG(a.state == FA_SUBJECT_OK, "seed %d: %s", (int)seed, a.text);
    for (int t = 0; t < 64; ++t) CHECK(global_out[t] == 0.0f && global_out[64 + t] == 16.0f);
  }
  expect_fault("no fence", exchange<NO_FENCE>, FA_SUBJECT_RACE, "no fence_async since", 64, 2);
  fault_file = "tests/simt/test_sm90_cluster.cpp", fault_line = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) { /* whichever error comes first */
    CHECK(run(exchange<NO_EMPTY>, seed, 64, 65536, 2).state == FA_SUBJECT_RACE);
    CHECK(run(exchange<NO_EXPECT>, seed, 64, 65536, 2).state != FA_SUBJECT_OK);
  }
  test_halves();
  expect_fault("__syncthreads", whole_block_only, FA_SUBJECT_CRASH, "beyond the executor", N, 2);
  expect_fault("another's memory", others_memory, FA_SUBJECT_OOB, "of another block", N, 2);
  expect_fault("beyond the own", beyond_own, FA_SUBJECT_OOB, "the block has 65536 bytes", N, 2);
  expect_fault("odd bytes", odd_bytes, FA_SUBJECT_CRASH, "not in sixteens", N, 2);
  fa_simt_launch l = {};
  l.kernel = apart;
  l.name = "toy";
  l.grid = {3, 1, 1};
  l.block = {N, 1, 1};
  l.cluster = 2;
  fa_simt_report r;
  fa_error err;
  CHECK(fa_simt_run(&l, &r, &err) == FA_ERR_INPUT && strstr(err.text, "clusters of 2 in a grid of 3"));
  return check_done();
}
