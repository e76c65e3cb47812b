/* Messages of commands that fail. */
#include "cases/base/edit_distance.h"
#include "fuzz/options/parts.h"

#include <stdarg.h>
#include <string.h>

int fa_cli_usage_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("fa-verify: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  return FA_EXIT_USAGE;
}

int fa_cli_fail(fa_status status, const fa_error *err) {
  fprintf(stderr, "fa-verify: %s\n", err->text);
  return status == FA_ERR_INPUT || status == FA_ERR_UNSUPPORTED ? FA_EXIT_USAGE : FA_EXIT_INFRASTRUCTURE;
}

/* Less than this is near: half of the letters are right, as in fa_choices_nearest. */
static int near_enough(const char *given) {
  return (int)strlen(given) / 2 + 1;
}

int fa_cli_unknown_option(const char *given) {
  const char *name = given + strspn(given, "-"), *nearest = NULL;
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
  int least = near_enough(bare);
  for (int i = 0; i < fa_n_options; ++i) {
    const int d = fa_edit_distance(bare, fa_options[i].name);
    if (d < least) least = d, nearest = fa_options[i].name;
  }
  return nearest ? fa_cli_usage_error("unknown option %s; the nearest is --%s", given, nearest)
                 : fa_cli_usage_error("unknown option %s; COMMAND --help lists those of a command", given);
}

int fa_cli_unknown_command(const char *given) {
  const char *nearest = NULL;
  int least = near_enough(given);
  for (int i = 0; i < fa_n_commands; ++i) {
    const int d = fa_edit_distance(given, fa_commands[i].name);
    if (d < least) least = d, nearest = fa_commands[i].name;
  }
  return nearest ? fa_cli_usage_error("unknown command %s; the nearest is %s", given, nearest)
                 : fa_cli_usage_error(
                       "unknown command %s; --help lists them, and cases are named with --cases", given);
}
