/* Bounds of dQ, dK, dV. */
#include "ref/backward.h"

void fa_bound_backward_block(const fa_backward_job *f, const fa_ref_rows *r, fa_ref_scratch *w,
                             fa_bound_scratch *b) {
  (void)f;
  (void)r;
  (void)w;
  (void)b;
}

void fa_bound_backward_merge(const fa_backward_job *f, const fa_ref_entry *e, int64_t hk,
                             fa_bound_scratch *b) {
  (void)f;
  (void)e;
  (void)hk;
  (void)b;
}
