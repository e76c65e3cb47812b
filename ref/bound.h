/* Error bounds of the reference's values: docs/bounds.md. */
#ifndef FA_REF_BOUND_H
#define FA_REF_BOUND_H

#include "ref/engine.h"

/* One thread's memory for bounds. */
typedef struct fa_bound_scratch {
  char *arena;
} fa_bound_scratch;
fa_status fa_bound_scratch_init(fa_bound_scratch *s, const fa_ref_call *c, bool backward, fa_error *err);
void fa_bound_scratch_free(fa_bound_scratch *s);

/* After a query block's values stand in c->out: its bounds. w holds the block's q and the head's k, v. */
void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b);

#endif
