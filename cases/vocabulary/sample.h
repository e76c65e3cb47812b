/* How much of the outputs is judged, where not all of them are. */
#ifndef FA_CASES_VOCABULARY_SAMPLE_H
#define FA_CASES_VOCABULARY_SAMPLE_H

#include "cases/base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fa_sample {
  int64_t rows,
      strips;    /* query rows of O, LSE and dQ; strips of keys of dK and dV. Both 0: everything is judged */
  uint64_t seed; /* of the places, beside the case's own */
} fa_sample;

#define FA_SAMPLE_SEED 1 /* the default */
#define FA_SAMPLE_TEXT 96

static inline bool fa_sample_is_asked(const fa_sample *s) {
  return s->rows > 0 || s->strips > 0;
}

/* "rows=2048,strips=64,seed=7": any of them once, rows or strips at least. FA_ERR_INPUT: says what is allowed. */
fa_status fa_sample_parse(const char *text, fa_sample *out, fa_error *err);
/* The same text, without the default seed. */
void fa_sample_text(const fa_sample *s, char text[FA_SAMPLE_TEXT]);

/* The smallest share of faulty places of which n places drawn at random hold one with 95 %. 1 for n = 0. */
double fa_sample_found(int64_t n);

#endif
