/* The secret of a run: 256 bits that are drawn after the candidate has said its hello, so that nobody can have known the
 * data, the hidden cases or the order of the traps before. A hash of it is printed first, itself at the end. */
#ifndef FA_FUZZ_UNTRUSTED_SECRET_H
#define FA_FUZZ_UNTRUSTED_SECRET_H

#include "cases/base/status.h"

#include <stdint.h>

#define FA_SECRET_DIGITS 64

typedef struct fa_secret {
  char hex[FA_SECRET_DIGITS + 1]; /* lower case */
} fa_secret;

/* From the system's source of entropy. FA_ERR_DEVICE: there is none. */
fa_status fa_secret_draw(fa_secret *out, fa_error *err);
/* FA_ERR_INPUT: text is not 64 hexadecimal digits. */
fa_status fa_secret_read(fa_secret *out, const char *text, fa_error *err);

/* A number for this use of it: the first 16 digits of SHA-256("SECRET what i j"). */
uint64_t fa_secret_number(const fa_secret *s, const char *what, uint64_t i, uint64_t j);
/* SHA-256 of three lines, each with its newline: the secret and the two hashes, as hexadecimal digits. */
void fa_secret_commit(const fa_secret *s, const char *cases_sha256, const char *contract_sha256,
                      char hex[65]);

#endif
