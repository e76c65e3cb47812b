#include "cases/base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fa_status fa_fail(fa_error *err, fa_status code, const char *format, ...) {
  if (err) {
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
  }
  return code;
}

void fa_error_prefix(fa_error *err, const char *format, ...) {
  if (!err) return;
  char prefix[sizeof err->text];
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  fa_error old = *err;
  size_t n = strlen(prefix);
  if (n > sizeof err->text - 3) n = sizeof err->text - 3;
  memcpy(err->text, prefix, n);
  snprintf(err->text + n, sizeof err->text - n, ": %s", old.text);
}

void fa_assert_failed(const char *expression, const char *file, int line) {
  fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, expression);
  abort();
}
