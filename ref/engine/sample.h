/* The places of the outputs that are computed, where that is not all of them.
 *
 * Values and bounds are those of the whole computation, bit for bit: rows and keys keep their places in the blocks and
 * tiles that they have there. Rows count for O, LSE and dQ, keys for dK and dV. */
#ifndef FA_REF_ENGINE_SAMPLE_H
#define FA_REF_ENGINE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fa_ref_place {
  int64_t b, h, i; /* sequence; query head and row, or key/value head and the strip's first key */
} fa_ref_place;

/* Keys of a strip. It begins at a multiple, and the last of a sequence may be shorter. */
enum { FA_STRIP_KEYS = 256 };

typedef struct fa_ref_sample {
  int64_t n_rows, n_strips;
  const fa_ref_place *row, *strip; /* ascending by b, h, i, and no two the same */
} fa_ref_sample;

/* The strips of a key/value head of a sequence; their number in *n. */
const fa_ref_place *fa_ref_strips_of(const fa_ref_sample *s, int64_t b, int64_t hk, int64_t *n);
/* Whether one of them has a key of j0 .. j0 + n - 1. */
bool fa_ref_strips_meet(const fa_ref_sample *s, int64_t b, int64_t hk, int64_t j0, int64_t n);

/* < 0, 0, > 0: the order that the arrays have; for qsort. */
int fa_ref_place_order(const void *a, const void *b);

#endif
