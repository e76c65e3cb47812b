/* What the subjects of a tier can run, asked in a process of its own: backends do not survive the fork of the workers. */
#ifndef FA_FUZZ_CAMPAIGN_TIER_ASK_H
#define FA_FUZZ_CAMPAIGN_TIER_ASK_H

#include "fuzz/campaign/session.h"

#define FA_TIER_SAMPLE 16 /* cases of each profile that are looked at */

typedef struct fa_tier_answers {
  bool *able;                      /* of each case of the list: some subject can run its forward pass */
  int64_t (*draw)[FA_TIER_SAMPLE]; /* by profile: which draw of a case suits the first subject; -1: none */
  size_t bytes;                    /* of the memory, at able */
} fa_tier_answers;

/* profiles: ask about random cases too. Should the process die, everything counts as able. Freed by fa_tier_forget. */
fa_status fa_tier_ask(fa_session *s, const fa_case_list *list, uint64_t seed, bool profiles,
                      fa_tier_answers *out, fa_error *err);
void fa_tier_forget(fa_tier_answers *a);

#endif
