/* One thread's memory: a single block, sized for the largest entry. */
#include "ref/engine.h"

#include <stdlib.h>

static double *take(char **at, int64_t n) {
  double *p = (double *)*at;
  *at += ((n * (int64_t)sizeof *p + 63) / 64) * 64;
  return p;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Lays the arrays out from `at`; with at == 0, only measures. Returns the end. */
static char *lay_out(fa_ref_scratch *s, const fa_ref_call *c, bool backward, char *at) {
  int64_t m = least(FA_BLOCK_M, c->max_sq), n = least(FA_BLOCK_N, c->max_sk);
  int64_t wide = c->d > c->dv ? c->d : c->dv;
  s->k = take(&at, c->max_sk * c->d);
  s->v = take(&at, c->max_sk * c->dv);
  s->q = take(&at, m * c->d);
  s->s = take(&at, m * n);
  s->z = take(&at, n);
  s->acc = take(&at, m * wide);
  s->m = take(&at, m);
  s->l = take(&at, m);
  s->th = take(&at, c->p->softcap > 0 && (backward || c->profile) ? m * n : 0);
  if (!backward) return at;
  s->o = take(&at, m * c->dv);
  s->d_o = take(&at, m * c->dv);
  s->dp = take(&at, m * n);
  s->dk = take(&at, c->max_sk * c->d);
  s->dv = take(&at, c->max_sk * c->dv);
  s->delta = take(&at, m);
  return at;
}

fa_status fa_ref_scratch_init(fa_ref_scratch *s, const fa_ref_call *c, bool backward, fa_error *err) {
  *s = (fa_ref_scratch){0};
  fa_ref_scratch measure = {0};
  size_t bytes =
      (size_t)(uintptr_t)lay_out(&measure, c, backward, NULL); /* from address 0: the end is the size */
  void *arena = NULL;
  if (posix_memalign(&arena, 64, bytes + 64) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory: %zu bytes of scratch", bytes);
  lay_out(s, c, backward, arena);
  s->arena = arena;
  return FA_OK;
}

void fa_ref_scratch_free(fa_ref_scratch *s) {
  free(s->arena);
  *s = (fa_ref_scratch){0};
}

void fa_ref_scratch_head(fa_ref_scratch *s, const fa_ref_call *c, const fa_ref_entry *e, int64_t hk) {
  if (s->e == e && s->hk == hk) return;
  fa_ref_load_k(c, FA_T_K, e, hk, 0, e->sk, s->k);
  fa_ref_load_k(c, FA_T_V, e, hk, 0, e->sk, s->v);
  s->e = e;
  s->hk = hk;
}
