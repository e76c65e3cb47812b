/* SHA-256 (FIPS 180-4): identifies data exactly, so that a file can record what it was made from. */
#ifndef FA_CASES_BASE_SHA256_H
#define FA_CASES_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct fa_sha256 {
  uint32_t h[8];
  uint64_t n_bytes;
  unsigned char block[64];
} fa_sha256;

void fa_sha256_init(fa_sha256 *s);
void fa_sha256_add(fa_sha256 *s, const void *bytes, size_t n);
/* hex receives 64 digits and a NUL. */
void fa_sha256_hex(fa_sha256 *s, char hex[65]);

#endif
