/* The executor reports every broken rule for sm_90a, at its line. */
#include "tests/simt/sm90.h"

static fa_tensor_map map;
static int width; /* bytes of the box's rows */

static void load_without_wait(const void *) {
  begin(1, 1);
  if (thread_id() == 0) {
    mbarrier_arrive_expect(BAR, 16 * width);
    tma_load(1024, &map, BAR, 0, 0, 0, 0);
  }
  FAULT, load_shared4(1024);
}
static void load_waited_for_elsewhere(const void *) { /* the other barrier's load proves nothing */
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
static void matrices_not_waited_for(const void *) { /* a row is stored by a lane, of what four others have */
  const uint32_t row = 16 * thread_id(), r[4] = {1, 2, 3, 4};
  FAULT, stmatrix_x4(row, r);
  load_shared4(row ^ 16);
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
static void no_parity(const void *) {
  begin(1, 1);
  FAULT, mbarrier_wait(BAR, -1);
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
static void arrivals_of_all_lanes(const void *) { /* where one would be right: as many phases complete */
  begin(1, 1);
  if (thread_id() == 0) mbarrier_arrive(BAR);
  FAULT, mbarrier_arrive(BAR);
  mbarrier_wait(BAR, 0);
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
static void store_waited_for_by_another_lane(const void *) {
  for (int i = 0; i < 2; ++i) store_shared4(1024 + 4 * (thread_id() + N * i), 1);
  fence_async();
  sync_block();
  if (thread_id() >= 32) return;
  if (thread_id() == 0) {
    tma_store(&map, 1024, 0, 0, 0, 0);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  if (thread_id() == 1) FAULT, store_shared4(1024, 2);
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

/* A product's operands, in shared memory; optionally without the fence. */
static void operands(bool fenced) {
  wgmma_fence();
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
static void product_again(float (&d)[WIDE / 8][4], int accumulate) {
  const uint64_t a = operand(A_AT, 64, false, 1, 0), b = operand(B_AT, WIDE, false, 1, 0);
  FAULT, wgmma_ss<0, 0>(d, a, b, accumulate, bf16());
  wgmma_commit();
  wgmma_wait<0>(d);
}
static void first_without_wgmma_fence(const void *) {
  float d[WIDE / 8][4];
  product_again(d, 0);
}
static void read_without_wgmma_fence(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  issue(d);
  wgmma_wait<0>(d);
  product_again(d, 0);
}
static void written_after_wgmma_fence(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  issue(d);
  wgmma_wait<0>(d);
  wgmma_fence();
  d[1][2] += 1.0f;
  product_again(d, 1);
}
static void a_written_after_wgmma_fence(const void *) {
  float d[WIDE / 8][4];
  uint32_t a[4] = {0, 0, 0, 0};
  operands(true);
  for (uint32_t i = 0; i < 2; ++i) {
    wgmma_fence();
    a[2] = i;
    FAULT, wgmma_rs<0>(d, a, operand(B_AT, WIDE, false, 1, 0), 0, bf16());
    wgmma_commit();
    wgmma_wait<0>(d);
  }
}
static void lanes_differ(const void *) {
  float d[WIDE / 8][4];
  operands(true);
  FAULT, wgmma_ss<0, 0>(d, operand(A_AT, 64, false, 1, 0), operand(B_AT, WIDE, false, 1, thread_id() % 2), 0,
                        bf16());
}

FA_COUNTERS(toy_counters, 4)
/* Far enough to be in no buffer, wherever the program has its own arrays. The compiler must not see it. */
static volatile int far_away = 1 << 22;
static void counter_below_the_first(const void *) {
  counter_fetch_add(toy_counters + -far_away);
}
static void counter_beyond_the_last(const void *) {
  counter_store(toy_counters + far_away, 0);
}
static void counter_of_its_array(const void *) {
  if (thread_id() < 4) counter_store(toy_counters + thread_id(), 0);
}
static void semaphore_not_cleared(const void *) {
  if (thread_id() == 0) FAULT, semaphore_release(reinterpret_cast<unsigned *>(scratch), 1);
}

static void check_counters() {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report below = run(counter_below_the_first, seed),
                         beyond = run(counter_beyond_the_last, seed);
    CHECK_MSG(below.state == FA_SUBJECT_OOB, "%s", below.text);
    CHECK_MSG(beyond.state == FA_SUBJECT_OOB, "%s", beyond.text);
    const fa_simt_report good = run(counter_of_its_array, seed);
    CHECK_MSG(good.state == FA_SUBJECT_OK, "%s", good.text);
  }
  expect("semaphore not cleared", semaphore_not_cleared, FA_SUBJECT_RACE,
         "of buffer scratch that nobody has written");
}

static void check_faults() {
  width = 48;
  map = map_of(tensor, 24, 16, 0);
  expect_fault("load without wait", load_without_wait, FA_SUBJECT_RACE, "shared offset 1024");
  expect_fault("load waited for elsewhere", load_waited_for_elsewhere, FA_SUBJECT_RACE,
               "read of shared offset");
  expect_fault("matrices not waited for", matrices_not_waited_for, FA_SUBJECT_RACE, "shared offset");
  expect_fault("stage overwritten", stage_overwritten, FA_SUBJECT_RACE, "shared offset 1024");
  expect_fault("released too early", released_too_early, FA_SUBJECT_RACE, "not ordered");
  expect_fault("fewer bytes", fewer_bytes, FA_SUBJECT_DEADLOCK, "a wait for an mbarrier");
  expect_fault("wrong parity", wrong_parity, FA_SUBJECT_DEADLOCK, "a wait for an mbarrier");
  expect_fault("no parity", no_parity, FA_SUBJECT_CRASH, "parity -1");
  expect_fault("no barrier", no_barrier, FA_SUBJECT_CRASH, "no mbarrier was initialised");
  for (uint64_t seed = 0; seed < 20; ++seed) { /* or it has not arrived yet */
    const fa_simt_report r = run(used_before_init, seed);
    CHECK_MSG(r.state == FA_SUBJECT_RACE || r.state == FA_SUBJECT_CRASH, "%s", r.text);
  }
  expect_fault("too many arrivals", too_many_arrivals, FA_SUBJECT_RACE, "more than 1 arrivals");
  expect_fault("arrivals of all lanes", arrivals_of_all_lanes, FA_SUBJECT_RACE,
               "nobody has waited for the one before");
  map = map_of(stored, 24, 16, 0);
  expect_fault("store without fence", store_without_fence, FA_SUBJECT_RACE, "no fence_async since");
  expect_fault("store still reading", store_still_reading, FA_SUBJECT_RACE, "may still read");
  for (uint64_t seed = 0; seed < 20; ++seed) { /* before the store, during it, or after its lane knows */
    const fa_simt_report r = run(store_waited_for_by_another_lane, seed);
    CHECK_MSG(r.state == FA_SUBJECT_RACE, "%s", r.text);
  }
  CHECK(strstr(run(store_waited_for_by_another_lane, 0).text,
               "lane 0 alone knows that a bulk store has read it"));
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
  expect_fault("first product", first_without_wgmma_fence, FA_SUBJECT_RACE,
               "before the warp's first product");
  expect_fault("read between", read_without_wgmma_fence, FA_SUBJECT_RACE, "no wgmma_fence since the wait");
  expect_fault("written between", written_after_wgmma_fence, FA_SUBJECT_RACE,
               "accumulator registers of this");
  expect_fault("A written between", a_written_after_wgmma_fence, FA_SUBJECT_RACE,
               "A registers of this product");
  expect_fault("lanes differ", lanes_differ, FA_SUBJECT_DEADLOCK, "give wgmma different operands");
}

int main() {
  check_faults();
  check_counters();
  return check_done();
}
