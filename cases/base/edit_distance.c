#include "cases/base/edit_distance.h"

#include <string.h>

int fa_edit_distance(const char *a, const char *b) {
  enum { MAX = 48 };
  int row[MAX + 1]; /* row[j]: from what was read of a to the first j letters of b */
  const size_t na = strnlen(a, MAX), nb = strnlen(b, MAX);
  for (size_t j = 0; j <= nb; ++j) row[j] = (int)j;
  for (size_t i = 1; i <= na; ++i) {
    int diagonal = row[0];
    row[0] = (int)i;
    for (size_t j = 1; j <= nb; ++j) {
      int best = (a[i - 1] | 32) == (b[j - 1] | 32) ? diagonal : diagonal + 1;
      diagonal = row[j];
      if (row[j] + 1 < best) best = row[j] + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
    }
  }
  return row[nb];
}

fa_nearest fa_nearest_to(const char *given) {
  return (fa_nearest){.given = given, .limit = (int)strlen(given) / 2 + 1};
}

void fa_nearest_look(fa_nearest *n, const char *name) {
  const int d = fa_edit_distance(n->given, name);
  if (d < n->limit) n->limit = d, n->name = name;
}
