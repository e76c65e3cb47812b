#include "cases/base/figures.h"

#include <stdarg.h>
#include <stdio.h>

const char *fa_count_text(int64_t n, char text[FA_COUNT_TEXT]) {
  char digits[FA_COUNT_TEXT];
  const int length =
      snprintf(digits, sizeof digits, "%llu", (unsigned long long)(n < 0 ? -(uint64_t)n : (uint64_t)n));
  char *at = text;
  if (n < 0) *at++ = '-';
  for (int i = 0; i < length; ++i) {
    if (i > 0 && (length - i) % 3 == 0) *at++ = ',';
    *at++ = digits[i];
  }
  *at = 0;
  return text;
}

void fa_text_put(fa_text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(t->at, t->left, format, args);
  va_end(args);
  const size_t used = n < 0 ? 0 : (size_t)n < t->left ? (size_t)n : t->left - (t->left > 0);
  t->at += used;
  t->left -= used;
}
