/* Messages of commands that fail. */
#include "fuzz/options/command.h"

#include <stdarg.h>

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
