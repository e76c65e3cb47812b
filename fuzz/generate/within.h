/* Random cases inside what a subject supports: a case that it cannot run is drawn again. */
#ifndef FA_FUZZ_GENERATE_WITHIN_H
#define FA_FUZZ_GENERATE_WITHIN_H

#include "fuzz/generate/draw.h"

/* How often one case is drawn at most. Drawing costs 2 microseconds, so subjects that take one case in a
 * thousand are still given cases. */
#define FA_MAX_DRAWS 2000

/* What is known of one profile's cases. It comes from a fixed sample of them, so that every process finds the same. */
typedef struct fa_drawing_known {
  bool sampled;
  bool any;      /* the subject takes some of them */
  bool backward; /* and does a backward pass of some */
} fa_drawing_known;

#define FA_DRAWING_PROFILES 64
typedef struct fa_drawing {
  /* Pass bits (fa_pass) that the subject can do for the problem. The same question has the same answer. */
  unsigned (*able)(void *ctx, const fa_problem *p);
  void *ctx;
  fa_drawing_known known[FA_DRAWING_PROFILES]; /* by profile; zeroed at first */
} fa_drawing;

/* Chooses the draw of case (profile, seed, index) for fa_generate_draw: the first whose forward pass the subject
 * does. If the case has a backward pass that it does not do, the next such draws are looked at too, unless the
 * subject has none at all. 0 if there is no such draw: the case as it is without a subject.
 *
 * The choice depends on nothing but the three and the subject. The last question asked is nearly always the one
 * about the chosen case. */
fa_status fa_drawing_choose(fa_drawing *d, const char *profile, uint64_t seed, int64_t index, int64_t *draw,
                            fa_error *err);

#endif
