#include "cases/vocabulary/sample.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000000000 /* rows or strips */

static fa_status refuse(const char *text, fa_error *err) {
  return fa_fail(err, FA_ERR_INPUT,
                 "%s: rows=N,strips=M is needed, both whole numbers below 10^9 and one of them above 0, and "
                 "seed=S may follow, from 0 to 2^64-1",
                 text);
}

/* NAME=NUMBER at *at; steps behind it and its comma. False: it is something else. */
static bool read_number(const char **at, const char *name, uint64_t most, uint64_t *out) {
  const size_t n = strlen(name);
  char *end;
  if (strncmp(*at, name, n) != 0 || (*at)[n] != '=' || (*at)[n + 1] < '0' || (*at)[n + 1] > '9') return false;
  errno = 0;
  *out = strtoull(*at + n + 1, &end, 10);
  if (errno || *out > most || (*end != ',' && *end != 0) || (*end == ',' && end[1] == 0)) return false;
  *at = end + (*end == ',');
  return true;
}

fa_status fa_sample_parse(const char *text, fa_sample *out, fa_error *err) {
  static const char *const name[] = {"rows", "strips", "seed"};
  uint64_t value[] = {0, 0, FA_SAMPLE_SEED};
  unsigned seen = 0;
  for (const char *at = text; *at;) {
    int which = 0;
    while (which < 3 && !read_number(&at, name[which], which < 2 ? MOST - 1 : UINT64_MAX, &value[which]))
      ++which;
    if (which == 3 || seen >> which & 1) return refuse(text, err);
    seen |= 1u << which;
  }
  *out = (fa_sample){(int64_t)value[0], (int64_t)value[1], value[2]};
  return fa_sample_is_asked(out) ? FA_OK : refuse(text, err);
}

void fa_sample_text(const fa_sample *s, char text[FA_SAMPLE_TEXT]) {
  const int n = snprintf(text, FA_SAMPLE_TEXT, "rows=%" PRId64 ",strips=%" PRId64, s->rows, s->strips);
  if (s->seed != FA_SAMPLE_SEED) snprintf(text + n, (size_t)(FA_SAMPLE_TEXT - n), ",seed=%" PRIu64, s->seed);
}

double fa_sample_found(int64_t n) {
  return n > 0 ? -expm1(log(0.05) / (double)n) : 1;
}
