/* Private to fuzz/workers: items that ran beside each other in one process when something went wrong, and are run again
 * alone to find out whose doing it was. */
#ifndef FA_FUZZ_WORKERS_SUSPECTS_H
#define FA_FUZZ_WORKERS_SUSPECTS_H

#include "fuzz/workers/process.h"

/* The first n_again are run again; the others only ran beside them. */
typedef struct fa_suspects {
  int n, n_again, n_open; /* n_open: not yet back */
  int64_t slot[FA_POOL_MAX_LANES], item[FA_POOL_MAX_LANES];
  char *alone[FA_POOL_MAX_LANES]; /* packed results of those that are back */
  size_t n_bytes[FA_POOL_MAX_LANES];
  bool found;     /* one of them goes wrong alone too */
  bool excused;   /* it was nobody's doing */
  char what[300]; /* what went wrong */
} fa_suspects;

/* What w works on. slot: the only one to be run again, -1 for all. NULL: out of memory, or it works on nothing. */
fa_suspects *fa_suspects_of(const fa_worker *w, int64_t slot, const char *what);
void fa_suspects_free(fa_suspects *s);

/* Did it go wrong, of an item that ran beside others? */
bool fa_is_suspect(const fa_result *r);
/* Takes the result of one that was run again. */
fa_status fa_suspects_back(fa_suspects *s, int64_t slot, const fa_result *r, fa_error *err);
/* Once all are back: the result of number i, initialised by the caller. */
fa_status fa_suspects_result(const fa_suspects *s, int i, const fa_pool_config *c, fa_result *r,
                             fa_error *err);

#endif
