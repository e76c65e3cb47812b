/* UTF-8 well-formedness (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef FA_CASES_BASE_UTF8_H
#define FA_CASES_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Length in bytes of the character at s, of which n bytes may be read; 0 if it is malformed or truncated. */
static inline int fa_utf8_length(const char *s, size_t n) {
  const unsigned char *u = (const unsigned char *)s;
  if (n == 0) return 0;
  if (u[0] < 0x80) return 1;
  int length = u[0] >= 0xf0 ? 4 : u[0] >= 0xe0 ? 3 : 2;
  if (u[0] < 0xc2 || u[0] > 0xf4 || n < (size_t)length) return 0;
  for (int i = 1; i < length; ++i)
    if ((u[i] & 0xc0) != 0x80) return 0;
  if (u[0] == 0xe0 && u[1] < 0xa0) return 0; /* overlong */
  if (u[0] == 0xed && u[1] > 0x9f) return 0; /* surrogate */
  if (u[0] == 0xf0 && u[1] < 0x90) return 0; /* overlong */
  if (u[0] == 0xf4 && u[1] > 0x8f) return 0; /* above U+10FFFF */
  return length;
}

/* Number of characters in a one-line text. -1 if it holds a control character or malformed UTF-8; *at is then
 * the byte. */
static inline int64_t fa_utf8_count(const char *text, int64_t *at) {
  int64_t n = 0;
  const char *s = text;
  while (*s) {
    int length = fa_utf8_length(s, strnlen(s, 4));
    if (length == 0 || (unsigned char)*s < 0x20 || *s == 0x7f) {
      *at = s - text;
      return -1;
    }
    s += length;
    ++n;
  }
  return n;
}

#endif
