#include "ref/attention/team.h"

#include <stdlib.h>

static fa_status init_all(fa_ref_team *t, const fa_ref_call *c, bool backward, fa_error *err) {
  fa_status status = FA_OK;
  for (int i = 0; status == FA_OK && i < t->n; ++i)
    status = fa_ref_scratch_init(&t->scratch[i], c, backward, err);
  for (int i = 0; status == FA_OK && t->bound && i < t->n; ++i)
    status = fa_bound_scratch_init(&t->bound[i], c, backward, i ? t->bound : NULL, err);
  return status;
}

fa_status fa_ref_team_init(fa_ref_team *t, const fa_ref_call *c, bool backward, int64_t n_items,
                           fa_error *err) {
  const int n = n_items < 1 ? 1 : n_items < c->n_threads ? (int)n_items : c->n_threads;
  *t = (fa_ref_team){.n = n, .scratch = calloc((size_t)n, sizeof *t->scratch)};
  t->bound = c->profile ? calloc((size_t)n, sizeof *t->bound) : NULL;
  if (!t->scratch || (c->profile && !t->bound))
    return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory");
  return init_all(t, c, backward, err);
}

/* Those that were not initialised are zeros, which have nothing to free. */
void fa_ref_team_free(fa_ref_team *t) {
  for (int i = 0; t->scratch && i < t->n; ++i) fa_ref_scratch_free(&t->scratch[i]);
  for (int i = 0; t->bound && i < t->n; ++i) fa_bound_scratch_free(&t->bound[i]);
  free(t->scratch);
  free(t->bound);
  *t = (fa_ref_team){0};
}
