/* What a case has, in words: its element type, its family, and what it asks for beyond plain attention. Reports name
 * cases by them, --require asks for them, and random runs say which of them no judged case had. */
#ifndef FA_FUZZ_COVERAGE_WORDS_H
#define FA_FUZZ_COVERAGE_WORDS_H

#include "cases/vocabulary/problem.h"

#include <stddef.h>

#define FA_MAX_WORDS 128
typedef unsigned __int128 fa_word_bits;
#define FA_WORDS_TEXT 512 /* enough for all words of one case */

/* The i-th word; NULL behind the last. */
const char *fa_word_at(int i);
/* Bit i: the problem has word i. */
fa_word_bits fa_words_of(const fa_problem *p);
/* "f16 flash causal gqa" */
void fa_words_text(fa_word_bits words, char *out, size_t size);

#endif
