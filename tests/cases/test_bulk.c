/* Work in bulk: every byte belongs to one piece, however many threads there are, and little is one piece. */
#include "cases/threads/bulk.h"
#include "tests/support/check.h"

#include <stdatomic.h>

enum { PIECES = 9 };
#define LEAST_PIECE (FA_BULK_LEAST / (PIECES - 1))

typedef struct seen {
  atomic_int calls, of[PIECES + 1];
  atomic_size_t bytes;
} seen;

static void see(void *context, size_t begin, size_t end) {
  seen *s = context;
  ++s->calls;
  if (begin % LEAST_PIECE == 0 && begin / LEAST_PIECE < PIECES) ++s->of[begin / LEAST_PIECE];
  s->bytes += end - begin;
}

int main(void) {
  const size_t bytes = FA_BULK_LEAST + 100;
  for (int threads = 0; threads <= 3; ++threads) {
    seen s = {0};
    fa_bulk_threads(threads);
    fa_bulk(bytes, see, &s);
    CHECK(s.bytes == bytes && s.calls == (threads > 1 ? PIECES : 1));
    for (int i = 0; i < PIECES; ++i) CHECK(s.of[i] == (threads > 1 || i == 0));
    s.calls = 0;
    fa_bulk(FA_BULK_LEAST - 1, see, &s);
    CHECK(s.calls == 1);
  }
  return check_done();
}
