/* Bounds of O and LSE. */
#include "ref/bound.h"

#include <stdlib.h>

fa_status fa_bound_scratch_init(fa_bound_scratch *s, const fa_ref_call *c, bool backward, fa_error *err) {
  (void)c;
  (void)backward;
  (void)err;
  *s = (fa_bound_scratch){0};
  return FA_OK;
}

void fa_bound_scratch_free(fa_bound_scratch *s) {
  free(s->arena);
  *s = (fa_bound_scratch){0};
}

void fa_bound_forward_block(fa_ref_call *c, const fa_ref_rows *r, fa_ref_scratch *w, fa_bound_scratch *b) {
  (void)c;
  (void)r;
  (void)w;
  (void)b;
}
