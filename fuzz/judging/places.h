/* Lists of places, private to the sample's sources. */
#ifndef FA_FUZZ_JUDGING_PLACES_H
#define FA_FUZZ_JUDGING_PLACES_H

#include "fuzz/judging/sample.h"

#include "ref/engine/call.h"

typedef struct places {
  fa_ref_place *at; /* owned */
  int64_t n, room;
} places;

/* False: out of memory. */
bool places_add(places *x, fa_ref_place at);
/* Sorts, and leaves one of each. */
void places_settle(places *x);
/* All rows of a head. */
bool places_add_head(places *x, const fa_ref_sequence *e, int64_t h);
fa_status places_no_memory(fa_error *err);

#endif
