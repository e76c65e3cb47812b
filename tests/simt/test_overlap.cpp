/* Kernels that may start before the previous one has ended: its writes to scratch memory are theirs only
 * after they have waited for it; an earlier access is reported, in every order of fibers. */
#include "tests/simt/toy.h"

static void write_scratch(const void *) {
  store_global(scratch + thread_id(), 1.0f);
}
/* Lets the next kernel start before it writes; its writes still count. */
static void let_next_start(const void *) {
  next_kernel_may_start();
  write_scratch(nullptr);
}

static void read_unwaited(const void *) {
  FAULT, store_global(global_out + thread_id(), load_global(scratch + thread_id()));
}
static void write_unwaited(const void *) {
  FAULT, store_global(scratch + thread_id(), 2.0f);
}
static void read_waited(const void *) {
  wait_for_kernels_before();
  store_global(global_out + thread_id(), load_global(scratch + (thread_id() ^ 1)));
}
static void read_too_early(const void *) {
  FAULT, store_global(global_out + thread_id(), load_global(scratch + thread_id()));
  wait_for_kernels_before();
}
static void first_waits_for_all(const void *) {
  if (thread_id() == 0) wait_for_kernels_before();
  sync_block();
  store_global(global_out + thread_id(), load_global(scratch + thread_id()));
}
static void first_waits_for_itself(const void *) {
  sync_block();
  if (thread_id() == 0) wait_for_kernels_before();
  FAULT, store_global(global_out + thread_id(), load_global(scratch + thread_id()));
}
static void read_own(const void *) {
  wait_for_kernels_before();
  store_global(scratch + thread_id(), 3.0f);
  store_global(global_out + thread_id(), load_global(scratch + thread_id()));
}

/* Runs the second kernel after the first; result of a third one, an ordinary launch that reads. */
static fa_simt_report run_both(fa_simt_kernel first, fa_simt_kernel second, bool overlaps, uint64_t seed) {
  memset(scratch_written, 0, sizeof scratch_written);
  CHECK(launch(first, seed).state == FA_SUBJECT_OK);
  const fa_simt_report r = launch(second, seed, N, 4096, {1, 1, 1}, 1, overlaps);
  if (r.state == FA_SUBJECT_OK) CHECK(launch(read_unwaited, seed).state == FA_SUBJECT_OK);
  return r;
}

static void expect_after(fa_simt_kernel first, fa_simt_kernel second, bool overlaps, const char *words) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const fa_simt_report r = run_both(first, second, overlaps, seed);
    CHECK_MSG(r.state == (words ? FA_SUBJECT_RACE : FA_SUBJECT_OK), "%s", r.text);
    if (!words) continue;
    CHECK_MSG(r.line == fault_line && strstr(r.text, words) && strstr(r.text, "nobody has waited"), "%s",
              r.text);
  }
}

int main() {
  expect_after(let_next_start, read_unwaited, true, "read of byte");
  expect_after(let_next_start, write_unwaited, true, "write of byte");
  expect_after(let_next_start, read_too_early, true, "read of byte");
  expect_after(let_next_start, first_waits_for_itself, true, "read of byte");
  expect_after(let_next_start, read_waited, true, nullptr);
  expect_after(let_next_start, first_waits_for_all, true, nullptr);
  expect_after(let_next_start, read_own, true, nullptr);
  /* An ordinary launch waits for the whole stream; also one after a kernel that does not let the next one
   * start early. */
  expect_after(let_next_start, read_unwaited, false, nullptr);
  expect_after(write_scratch, read_unwaited, true, nullptr);
  return check_done();
}
