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

/* A message may quote what a child has said. Line ends are our own: carets stand under expressions. */
static void print_clean(FILE *out, const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; ++c)
    fputc((*c < 0x20 && *c != '\n') || *c == 0x7f ? '?' : *c, out);
}

int fa_cli_fail(fa_status status, const fa_error *err) {
  fputs("fa-verify: ", stderr);
  print_clean(stderr, err->text);
  fputc('\n', stderr);
  return status == FA_ERR_INPUT || status == FA_ERR_UNSUPPORTED ? FA_EXIT_USAGE : FA_EXIT_INFRASTRUCTURE;
}

int fa_cli_unknown_option(const char *given) {
  const char *name = given + strspn(given, "-");
  char bare[64];
  snprintf(bare, sizeof bare, "%.*s", (int)strcspn(name, "="), name);
  fa_nearest nearest = fa_nearest_to(bare);
  for (int i = 0; i < fa_n_options; ++i) fa_nearest_look(&nearest, fa_options[i].name);
  return nearest.name
             ? fa_cli_usage_error("unknown option %s; the nearest is --%s", given, nearest.name)
             : fa_cli_usage_error("unknown option %s; COMMAND --help lists those of a command", given);
}

int fa_cli_unknown_command(const char *given) {
  fa_nearest nearest = fa_nearest_to(given);
  for (int i = 0; i < fa_n_commands; ++i) fa_nearest_look(&nearest, fa_commands[i].name);
  return nearest.name ? fa_cli_usage_error("unknown command %s; the nearest is %s", given, nearest.name)
                      : fa_cli_usage_error(
                            "unknown command %s; --help lists them, and cases are named with --cases", given);
}
