#include "tests/held/tally.h"

#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static tally_line *line_of(tally *t, const char *name) {
  for (int i = 0; i < t->n; ++i)
    if (strcmp(t->line[i].name, name) == 0) return &t->line[i];
  REQUIRE(t->n < (int)(sizeof t->line / sizeof *t->line) && strlen(name) < sizeof t->line[0].name);
  tally_line *l = &t->line[t->n++];
  *l = (tally_line){.logs = 0};
  strcpy(l->name, name);
  return l;
}

void tally_add(tally *t, const char *name, double x) {
  tally_line *l = line_of(t, name);
  const long long place = ++l->n % 31 + 1;
  if (x != 0 && isfinite(x)) l->logs += (double)place / 31 * log2(fabs(x));
  l->odd += place * ((x == 0) + 3 * (x < 0) + 5 * (isinf(x) != 0) + 7 * (isnan(x) != 0));
}

/* The sum's last digits are the processor's own, and so is the last bit of a float where libm's are. */
static bool is_held(const tally_line *l, FILE *f) {
  tally_line was = {.n = 0};
  const bool read = fscanf(f, "%47s %lld %lld %lf", was.name, &was.n, &was.odd, &was.logs) == 4;
  const bool same = read && strcmp(was.name, l->name) == 0 && was.n == l->n && was.odd == l->odd &&
                    fabs(was.logs - l->logs) <= 4e-7;
  CHECK_MSG(same, "\n  now      %s %lld %lld %.10f\n  recorded %s %lld %lld %.10f", l->name, l->n, l->odd,
            l->logs, was.name, was.n, was.odd, was.logs);
  return read;
}

void tally_hold(const tally *t, const char *path, bool writes) {
  FILE *f = fopen(path, writes ? "w" : "r");
  char more[8];
  REQUIRE(f);
  for (int i = 0; i < t->n; ++i) {
    const tally_line *l = &t->line[i];
    if (writes)
      fprintf(f, "%s %lld %lld %.10f\n", l->name, l->n, l->odd, l->logs);
    else if (!is_held(l, f))
      break;
  }
  CHECK_MSG(writes || fscanf(f, "%7s", more) != 1, "%s: more is recorded than there is", path);
  CHECK(fclose(f) == 0);
}
