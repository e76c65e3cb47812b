/* The working space of a run's threads: a scratch for each, and one of bounds where the call wants them. */
#ifndef FA_REF_ATTENTION_TEAM_H
#define FA_REF_ATTENTION_TEAM_H

#include "ref/bounds/terms.h"
#include "ref/tiles/scratch.h"

typedef struct fa_ref_team {
  int n;                   /* threads */
  fa_ref_scratch *scratch; /* [n] */
  fa_bound_scratch *bound; /* [n]; NULL: values only */
} fa_ref_team;

/* For n_items work items: as many threads as the call has, but no more than items, and at least one. fa_ref_team_free frees what
 * it made, also of one that failed (FA_ERR_MEMORY). */
fa_status fa_ref_team_init(fa_ref_team *t, const fa_ref_call *c, bool backward, int64_t n_items,
                           fa_error *err);
void fa_ref_team_free(fa_ref_team *t);

#endif
