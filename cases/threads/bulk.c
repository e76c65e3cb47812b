#include "cases/threads/bulk.h"

#include "cases/threads/parallel.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

static _Thread_local int n_threads = 1; /* that this thread may use */

void fa_bulk_threads(int n) {
  n_threads = n > 1 ? n : 1;
}

/* ---- in pieces ---- */

#define PIECE ((size_t)8 << 20)

typedef struct pieces {
  size_t bytes;
  void (*work)(void *context, size_t begin, size_t end);
  void *context;
} pieces;

static void do_piece(void *context, int thread, int64_t item) {
  const pieces *p = context;
  const size_t begin = (size_t)item * PIECE;
  (void)thread;
  p->work(p->context, begin, p->bytes - begin < PIECE ? p->bytes : begin + PIECE);
}

void fa_bulk(size_t bytes, void (*work)(void *context, size_t begin, size_t end), void *context) {
  pieces p = {bytes, work, context};
  if (bytes < FA_BULK_LEAST || n_threads == 1)
    work(context, 0, bytes);
  else
    fa_parallel(n_threads, (int64_t)((bytes + PIECE - 1) / PIECE), do_piece, &p);
}

/* ---- copies and comparisons ---- */

typedef struct two {
  char *to;
  const char *from;
  atomic_bool differ;
} two;

static void copy(void *context, size_t begin, size_t end) {
  const two *x = context;
  memcpy(x->to + begin, x->from + begin, end - begin);
}

void fa_bulk_copy(void *to, const void *from, size_t bytes) {
  two x = {.to = to, .from = from};
  if (bytes > 0) fa_bulk(bytes, copy, &x);
}

static void compare(void *context, size_t begin, size_t end) {
  two *x = context;
  if (!x->differ && memcmp(x->to + begin, x->from + begin, end - begin) != 0) x->differ = true;
}

bool fa_bulk_equal(const void *a, const void *b, size_t bytes) {
  two x = {.to = (char *)a, .from = b};
  if (bytes > 0) fa_bulk(bytes, compare, &x);
  return !x.differ;
}

void fa_bulk_expect(void *memory, size_t bytes) {
  const uintptr_t page = (uintptr_t)2 << 20, first = ((uintptr_t)memory + page - 1) / page * page,
                  end = ((uintptr_t)memory + bytes) / page * page;
  if (bytes >= FA_BULK_LEAST && end > first)
    madvise((char *)memory + (first - (uintptr_t)memory), end - first, MADV_HUGEPAGE);
}
