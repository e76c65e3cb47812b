/* Cases that nobody knew before the run: beside those that are named, their neighbours, and cases for what the contract
 * claims and no named case has. */
#ifndef FA_FUZZ_UNTRUSTED_HIDDEN_H
#define FA_FUZZ_UNTRUSTED_HIDDEN_H

#include "fuzz/untrusted/rules.h"

/* A case like `named`, which the contract has too: other lengths, around edges of tiles; other heads; other fills. The
 * i-th of the run, "hidden-I". *found = false: none could be made. */
fa_status fa_hidden_neighbour(const fa_rules *r, const fa_case *named, int64_t i, fa_case *out, bool *found,
                              fa_error *err);
/* A case like it, with a few rows and thousands of keys, or as many as the contract's limits let through. */
fa_status fa_hidden_long(const fa_rules *r, const fa_case *named, int64_t i, fa_case *out, bool *found,
                         fa_error *err);
/* A case drawn at random inside the contract that has this word (fa_word_at). *found = false: none came up. */
fa_status fa_hidden_with_word(const fa_rules *r, int word, int64_t i, fa_case *out, bool *found,
                              fa_error *err);

#endif
