/* "Did you mean": the name with the fewest letters to change. */
#include "fuzz/options/parts.h"

#include <string.h>

static int distance(const char *a, const char *b) {
  enum { MAX = 40 };
  int row[MAX + 1];
  int na = (int)strnlen(a, MAX), nb = (int)strnlen(b, MAX);
  for (int j = 0; j <= nb; ++j) row[j] = j;
  for (int i = 1; i <= na; ++i) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= nb; ++j) {
      int replace = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      int best = row[j] < row[j - 1] ? row[j] + 1 : row[j - 1] + 1;
      row[j] = best < replace ? best : replace;
    }
  }
  return row[nb];
}

int fa_cli_unknown_option(const char *given) {
  const char *name = given + strspn(given, "-");
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
  int best = 0;
  for (int i = 1; i < fa_n_options; ++i)
    if (distance(bare, fa_options[i].name) < distance(bare, fa_options[best].name)) best = i;
  return fa_cli_usage_error("unknown option %s; the nearest is --%s", given, fa_options[best].name);
}

int fa_cli_unknown_command(const char *given) {
  int best = 0;
  for (int i = 1; i < fa_n_commands; ++i)
    if (distance(given, fa_commands[i].name) < distance(given, fa_commands[best].name)) best = i;
  return fa_cli_usage_error("unknown command %s; the nearest is %s", given, fa_commands[best].name);
}
