/* Launches whose blocks add floats in a fixed order: three blocks add to the same memory, and the executor reports two
 * additions that no chain of semaphores orders, whatever ran first. */
#include "tests/simt/toy.h"

#include "gpu/kernels/machine/prim_sm90.cuh"

#include <atomic>

/* Put before an addition: where it is. Blocks run on several threads. */
static std::atomic<int> adding_line;
#define HERE adding_line = __LINE__

static int block_id() {
  return static_cast<int>(blockIdx.x);
}
static unsigned *semaphore(int i) {
  return reinterpret_cast<unsigned *>(scratch) + i;
}
static void add() {
  const float one[4] = {1, 1, 1, 1};
  HERE, atomic_add4(global_out, one);
}

/* ---- one thread ---- */

static void turns(const void *) {
  if (thread_id() > 0) return;
  if (block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  add();
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
static void turn_not_taken(const void *) {
  if (thread_id() > 0) return;
  add();
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
static void last_turn_not_taken(const void *) {
  if (thread_id() > 0) return;
  if (block_id() == 1) semaphore_wait(semaphore(0), 1);
  add();
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
/* What a block adds twice is its own affair. */
static void turns_of_two(const void *) {
  if (thread_id() > 0) return;
  if (block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  add();
  add();
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
static void passed_before_addition(const void *) {
  if (thread_id() > 0) return;
  if (block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
  add();
}
/* What stood there before the launch says nothing of any block. */
static void waits_for_value_before_launch(const void *) {
  if (thread_id() > 0) return;
  semaphore_wait(semaphore(3), 0);
  add();
  semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}

/* ---- other blocks' semaphores: the one between does not add ---- */

static void through_another(const void *) {
  if (thread_id() > 0) return;
  if (block_id() > 0) semaphore_wait(semaphore(block_id() - 1), 1);
  if (block_id() != 1) add();
  semaphore_release(semaphore(block_id()), 1);
}
static void other_waits_for_nobody(const void *) {
  if (thread_id() > 0) return;
  if (block_id() == 2) semaphore_wait(semaphore(1), 1);
  if (block_id() != 1) add();
  semaphore_release(semaphore(block_id()), 1);
}
static void other_releases_first(const void *) {
  if (thread_id() > 0) return;
  if (block_id() == 1) semaphore_release(semaphore(1), 1);
  if (block_id() > 0) semaphore_wait(semaphore(block_id() - 1), 1);
  if (block_id() != 1) add();
  if (block_id() != 1) semaphore_release(semaphore(block_id()), 1);
}
static void threads_of_other(bool meet) {
  if (block_id() != 1 && thread_id() > 0) return;
  if (block_id() == 2) semaphore_wait(semaphore(1), 1);
  if (block_id() == 1 && thread_id() == 0) semaphore_wait(semaphore(0), 1);
  if (block_id() == 1 && meet) sync_block();
  if (block_id() != 1) add();
  if (thread_id() == (block_id() == 1 ? 32 : 0)) semaphore_release(semaphore(block_id()), 1);
}
static void threads_of_other_meet(const void *) {
  threads_of_other(true);
}
static void threads_of_other_do_not_meet(const void *) {
  threads_of_other(false);
}

/* However many semaphores there are, each is looked up on its own. */
static void among_others(const void *) {
  const int own = N - 48;
  if (thread_id() > 0) return;
  if (block_id() == 2) semaphore_wait(semaphore(own), 1);
  if (block_id() != 1) add();
  if (block_id() == 0) semaphore_release(semaphore(own), 1);
  if (block_id() != 1) return;
  for (int i = 4; i < N; ++i) semaphore_release(reinterpret_cast<unsigned *>(global_out) + i, 1);
  for (int i = 0; i < N; ++i)
    if (i != own) semaphore_release(semaphore(i), 1);
}

/* ---- a warp adds after its first lane's wait, which releases after all have added ---- */

static void lanes(bool after_wait, bool before_release) {
  const float one[4] = {1, 1, 1, 1};
  if (thread_id() >= 32) return;
  if (thread_id() == 0 && block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  if (after_wait) sync_warp();
  HERE, atomic_add4(global_out + 4 * thread_id(), one);
  if (before_release) sync_warp();
  if (thread_id() == 0) semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
static void lanes_meet(const void *) {
  lanes(true, true);
}
static void lanes_do_not_meet_after_wait(const void *) {
  lanes(false, true);
}
static void lanes_do_not_meet_before_release(const void *) {
  lanes(true, false);
}

/* ---- a warp controls when another adds, by mbarriers ---- */

enum { READY = 1024, ADDED = 1032 };

/* Lanes from `first` on add. */
static void controlled(bool is_added, int first = 0, int end = 32, bool meet = true) {
  const float one[4] = {1, 1, 1, 1};
  if (thread_id() == 0) {
    mbarrier_init(READY, 1);
    mbarrier_init(ADDED, 1);
    mbarrier_init_fence();
  }
  sync_block();
  if (thread_id() == 32) {
    if (block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
    mbarrier_arrive(READY);
    if (is_added) mbarrier_wait(ADDED, 0);
    semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
  } else if (thread_id() < 32) {
    mbarrier_wait(READY, 0);
    if (first <= thread_id() && thread_id() < end) HERE, atomic_add4(global_out + 4 * thread_id(), one);
    if (meet) sync_warp();
    if (thread_id() == 0) mbarrier_arrive(ADDED);
  }
}
static void controlled_both_ways(const void *) {
  controlled(true);
}
static void first_lane_arrives_for_itself(const void *) {
  controlled(true, 0, 1, false);
}
static void first_lane_arrives_for_another(const void *) {
  controlled(true, 1, 2, false);
}
static void released_without_hearing(const void *) {
  controlled(false);
}

/* ---- bulk additions ---- */

typedef void (*waiting)();

/* Lanes 0 to 3 add 64 bytes each. */
static void bulk(bool waits, waiting wait_for_additions, bool meet) {
  const int lane = thread_id();
  if (lane >= 32) return;
  store_shared16(16 * static_cast<uint32_t>(lane), vec4{0, 0, 0, 0});
  fence_async();
  sync_warp();
  if (lane == 0 && waits && block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  sync_warp();
  if (lane < 4) {
    HERE, bulk_add(global_out + 16 * lane, 64 * static_cast<uint32_t>(lane), 64);
    tma_store_commit();
    tma_store_wait_read<0>();
    wait_for_additions();
  }
  if (meet) sync_warp();
  if (lane == 0) semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
/* Two lanes add to the same, one after the other, and the first one waits. */
static void bulk_waited_for_by_one(const void *) {
  const int lane = thread_id();
  if (lane >= 32) return;
  store_shared16(16 * static_cast<uint32_t>(lane), vec4{0, 0, 0, 0});
  fence_async();
  if (lane == 0 && block_id() > 0) semaphore_wait(semaphore(0), static_cast<unsigned>(block_id()));
  for (int i = 0; i < 2; ++i) {
    sync_warp();
    if (lane != i) continue;
    HERE, bulk_add(global_out, 0, 64);
    tma_store_commit();
    tma_store_wait_read<0>();
  }
  sync_warp();
  if (lane == 0) tma_store_wait();
  sync_warp();
  if (lane == 0) semaphore_release(semaphore(0), static_cast<unsigned>(block_id() + 1));
}
static void for_nothing() {}
static void for_all() {
  tma_store_wait();
}
static void bulk_turns(const void *) {
  bulk(true, for_all, true);
}
static void bulk_turn_not_taken(const void *) {
  bulk(false, for_all, true);
}
static void bulk_passed_early(const void *) {
  bulk(true, for_nothing, true);
}
static void bulk_waited_for_by_other_lanes(const void *) {
  bulk(true, for_all, false);
}

/* ---- */

static fa_simt_report add_in_order(fa_simt_kernel kernel, uint64_t seed, int n_threads = 1,
                                   bool adds_in_order = true) {
  memset(scratch, 0, sizeof memory.scratch);
  memset(scratch_written, FA_WRITTEN, sizeof scratch_written);
  return launch(kernel, seed, N, 4096, {3, 1, 1}, n_threads, false, adds_in_order);
}

static void expect_order(const char *what, fa_simt_kernel kernel) {
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (int n_threads = 1; n_threads <= 3; ++n_threads) {
      const fa_simt_report r = add_in_order(kernel, seed, n_threads);
      CHECK_MSG(r.state == FA_SUBJECT_OK, "%s, seed %d: %s", what, (int)seed, r.text);
    }
}

/* block: the one whose addition came first when blocks run one after another. */
static void expect_no_order(const char *what, fa_simt_kernel kernel, const char *block,
                            const char *why = "with no semaphore between") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = add_in_order(kernel, seed);
    char words[160];
    snprintf(words, sizeof words, "adds to what block %s added to at %s:%d, %s: in a deterministic call",
             block, __FILE__, adding_line.load(), why);
    CHECK_MSG(r.state == FA_SUBJECT_RACE && strstr(r.text, words), "%s, seed %d: \"%s\" lacks \"%s\"", what,
              (int)seed, r.text, words);
    CHECK_MSG(r.line == adding_line, "%s: not at line %d: %s", what, adding_line.load(), r.text);
    const fa_simt_report several = add_in_order(kernel, seed, 3); /* whichever came first there */
    CHECK_MSG(several.state == FA_SUBJECT_RACE, "%s, seed %d, 3 threads: %s", what, (int)seed, several.text);
    const fa_simt_report any = add_in_order(kernel, seed, 1, false);
    CHECK_MSG(any.state == FA_SUBJECT_OK, "%s, in any order: %s", what, any.text);
  }
}

int main() {
  expect_order("turns", turns);
  expect_order("turns of two additions", turns_of_two);
  expect_order("first lane arrives for itself", first_lane_arrives_for_itself);
  expect_order("through another", through_another);
  expect_order("among others", among_others);
  expect_order("threads of another meet", threads_of_other_meet);
  expect_order("lanes meet", lanes_meet);
  expect_order("controlled", controlled_both_ways);
  expect_order("bulk turns", bulk_turns);
  expect_no_order("turn not taken", turn_not_taken, "(0,0,0)");
  expect_no_order("last turn not taken", last_turn_not_taken, "(1,0,0)");
  expect_no_order("passed before addition", passed_before_addition, "(0,0,0)");
  expect_no_order("value before launch", waits_for_value_before_launch, "(0,0,0)");
  expect_no_order("other waits for nobody", other_waits_for_nobody, "(0,0,0)");
  expect_no_order("other releases first", other_releases_first, "(0,0,0)");
  expect_no_order("threads of another do not meet", threads_of_other_do_not_meet, "(0,0,0)");
  expect_no_order("lanes do not meet after wait", lanes_do_not_meet_after_wait, "(0,0,0)");
  expect_no_order("lanes do not meet before release", lanes_do_not_meet_before_release, "(0,0,0)");
  expect_no_order("first lane arrives for another", first_lane_arrives_for_another, "(0,0,0)");
  expect_no_order("released without hearing", released_without_hearing, "(0,0,0)");
  expect_no_order("bulk turn not taken", bulk_turn_not_taken, "(0,0,0)");
  expect_no_order("bulk passed early", bulk_passed_early, "(0,0,0)", "which nobody has waited for");
  expect_no_order("bulk waited for by one", bulk_waited_for_by_one, "(0,0,0)", "which nobody has waited for");
  expect_no_order("bulk waited for by other lanes", bulk_waited_for_by_other_lanes, "(0,0,0)");
  return check_done();
}
