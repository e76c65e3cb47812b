/* Global memory as the kernel sees it: bounds, alignment, and reads of unwritten scratch memory. */
#include "gpu/simt/order.h"

const fa_simt_range *fa_simt_range_of(fa_simt_block *b, const void *address, size_t bytes) {
  const char *const p = address;
  const fa_simt_launch *l = b->launch;
  for (int tried = 0, i = b->last_range; tried < l->n_ranges; ++tried, i = i + 1 == l->n_ranges ? 0 : i + 1) {
    const fa_simt_range *r = &l->ranges[i];
    if (p >= r->begin && (size_t)(p - r->begin) <= r->bytes && r->bytes - (size_t)(p - r->begin) >= bytes) {
      b->last_range = i;
      return r;
    }
  }
  return NULL;
}

/* Reports an access outside all ranges; the message names the range with the nearest edge. */
static void outside(fa_simt_block *b, const char *p, size_t bytes, bool write, fa_simt_place at) {
  const fa_simt_range *best = NULL;
  int64_t best_distance = INT64_MAX, best_offset = 0;
  for (int i = 0; i < b->launch->n_ranges; ++i) {
    const fa_simt_range *r = &b->launch->ranges[i];
    const int64_t offset = (int64_t)((intptr_t)p - (intptr_t)r->begin);
    const int64_t beyond = offset < 0 ? -offset : offset - (int64_t)r->bytes;
    if (beyond < best_distance) {
      best = r;
      best_distance = beyond;
      best_offset = offset;
    }
  }
  const char *verb = write ? "write" : "read";
  if (!best || best_distance > (int64_t)1 << 20)
    fa_simt_violation(FA_SUBJECT_OOB, at, "global %s of %zu bytes outside every buffer of the launch", verb,
                      bytes);
  fa_simt_violation(FA_SUBJECT_OOB, at,
                    "global %s of %zu bytes at byte %lld of buffer %s, which has %zu bytes", verb, bytes,
                    (long long)best_offset, best->name, best->bytes);
}

/* Blocks on several host threads share a range. What they set here is never reset during a launch, so relaxed
 * accesses are enough. */
static void track(const fa_simt_block *b, const fa_simt_range *r, const char *p, size_t bytes, bool write,
                  fa_simt_place at) {
  const size_t begin = (size_t)(p - r->begin);
  for (size_t w = begin / 4; w <= (begin + bytes - 1) / 4; ++w) {
    const uint8_t is = __atomic_load_n(&r->written[w], __ATOMIC_RELAXED);
    if (is == FA_WRITTEN_BEFORE && b->launch->overlaps && !b->running->waited)
      fa_simt_violation(FA_SUBJECT_RACE, at,
                        "%s of byte %zu of buffer %s, which a kernel that may still be running wrote: nobody "
                        "has waited for it",
                        write ? "write" : "read", w * 4, r->name);
    if (write)
      __atomic_store_n(&r->written[w], FA_WRITTEN_NOW, __ATOMIC_RELAXED);
    else if (is == FA_UNWRITTEN)
      fa_simt_violation(FA_SUBJECT_RACE, at, "read of byte %zu of buffer %s that nobody has written", w * 4,
                        r->name);
  }
}

void fa_simt_check_aligned(const void *p, size_t bytes, fa_simt_place at) {
  if ((uintptr_t)p % bytes != 0)
    fa_simt_violation(FA_SUBJECT_CRASH, at, "misaligned global access of %zu bytes (address %% %zu is %zu)",
                      bytes, bytes, (size_t)((uintptr_t)p % bytes));
}

void *fa_simt_global(const void *p, size_t bytes, bool write, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  fa_simt_check_aligned(p, bytes, at);
  const fa_simt_range *r = fa_simt_range_of(b, p, bytes);
  if (!r) outside(b, p, bytes, write, at);
  if (write && !r->writable)
    fa_simt_violation(FA_SUBJECT_OOB, at, "global write of %zu bytes to the read-only buffer %s", bytes,
                      r->name);
  if (r->written) track(b, r, p, bytes, write, at);
  *(write ? &b->work.stored : &b->work.loaded) += (int64_t)bytes;
  return (void *)(uintptr_t)p;
}

void *fa_simt_global_add(const void *p, size_t bytes, bool asynchronous, fa_simt_place at) {
  fa_simt_global(p, bytes, false, at);
  void *const to = fa_simt_global(p, bytes, true, at);
  if (fa_simt_current->order) fa_simt_order_add(fa_simt_current, p, asynchronous, at);
  return to;
}

void fa_simt_expect_written(const void *p, size_t bytes, fa_simt_place at) {
  fa_simt_block *b = fa_simt_current;
  const fa_simt_range *r = fa_simt_range_of(b, p, bytes);
  if (!r) outside(b, p, bytes, false, at);
  if (r->written) track(b, r, p, bytes, false, at);
}
