#include "fuzz/untrusted/secret.h"

#include "cases/base/sha256.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

fa_status fa_secret_draw(fa_secret *out, fa_error *err) {
  unsigned char bytes[FA_SECRET_DIGITS / 2];
  if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
    return fa_fail(err, FA_ERR_DEVICE, "no secret can be drawn: %s", strerror(errno));
  for (size_t i = 0; i < sizeof bytes; ++i) snprintf(out->hex + 2 * i, 3, "%02x", bytes[i]);
  return FA_OK;
}

fa_status fa_secret_read(fa_secret *out, const char *text, fa_error *err) {
  size_t n = 0;
  for (; text[n] && n < FA_SECRET_DIGITS && isxdigit((unsigned char)text[n]); ++n)
    out->hex[n] = (char)tolower((unsigned char)text[n]);
  out->hex[n] = 0;
  if (n == FA_SECRET_DIGITS && !text[n]) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "--secret: %d hexadecimal digits are needed", FA_SECRET_DIGITS);
}

uint64_t fa_secret_number(const fa_secret *s, const char *what, uint64_t i, uint64_t j) {
  char text[160], hex[65], first[17];
  fa_sha256 sha;
  const int n = snprintf(text, sizeof text, "%s %s %llu %llu", s->hex, what, (unsigned long long)i,
                         (unsigned long long)j);
  FA_ASSERT(n > 0 && n < (int)sizeof text);
  fa_sha256_init(&sha);
  fa_sha256_add(&sha, text, (size_t)n);
  fa_sha256_hex(&sha, hex);
  snprintf(first, sizeof first, "%.16s", hex);
  return strtoull(first, NULL, 16);
}

void fa_secret_commit(const fa_secret *s, const char *cases_sha256, const char *contract_sha256,
                      char hex[65]) {
  fa_sha256 sha;
  const char *const lines[] = {s->hex, cases_sha256, contract_sha256};
  fa_sha256_init(&sha);
  for (int i = 0; i < 3; ++i) {
    fa_sha256_add(&sha, lines[i], strlen(lines[i]));
    fa_sha256_add(&sha, "\n", 1);
  }
  fa_sha256_hex(&sha, hex);
}
