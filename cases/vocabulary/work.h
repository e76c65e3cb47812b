/* What kernels did on the way to their outputs, counted where they are executed on the CPU (gpu/simt). All 0: nobody
 * counted. It does not depend on the order in which threads ran. */
#ifndef FA_CASES_VOCABULARY_WORK_H
#define FA_CASES_VOCABULARY_WORK_H

#include <stdint.h>

typedef struct fa_work {
  int64_t products; /* multiply-adds of the matrix units, those of padding and of hidden pairs included */
  int64_t loaded, stored; /* bytes of global memory; an atomic addition counts as stored */
  int64_t
      barriers; /* threads that came to a barrier of more than a warp, and waits for one in shared memory */
} fa_work;

static inline void fa_work_add(fa_work *to, const fa_work *more) {
  to->products += more->products;
  to->loaded += more->loaded;
  to->stored += more->stored;
  to->barriers += more->barriers;
}

#endif
