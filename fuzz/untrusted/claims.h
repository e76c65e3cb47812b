/* What a contract claims, word by word, and which of it was judged. What nobody could test is no reason to trust. */
#ifndef FA_FUZZ_UNTRUSTED_CLAIMS_H
#define FA_FUZZ_UNTRUSTED_CLAIMS_H

#include "fuzz/coverage/words.h"
#include "fuzz/untrusted/rules.h"
#include "report/result.h"

typedef struct fa_claims {
  fa_word_bits claimed, tested; /* bits of fa_word_at */
  int64_t not_claimed;          /* cases outside the contract */
} fa_claims;

/* Element types, families, features, and the backward pass. */
void fa_claims_of(const fa_rules *r, fa_claims *out);
/* Counts a result: a word is tested by a case that has it and was judged, a word of gradients by its backward pass. */
void fa_claims_note(fa_claims *c, const fa_result *r);
/* What is claimed and was not tested. */
fa_word_bits fa_claims_untested(const fa_claims *c);
/* What a contract might claim and this one does not. */
fa_word_bits fa_claims_not_made(const fa_claims *c);
/* What its outputs and conventions keep from being judged: "no lse; o of rows without keys may be anything"; "" = nothing. */
void fa_claims_gaps_text(const fa_rules *r, char *out, size_t size);

#endif
