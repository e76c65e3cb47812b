/* One thread's memory: a single block, sized for the longest sequence. */
#include "ref/tiles/scratch.h"

#include <stdlib.h>

static double *take(fa_ref_arena *a, int64_t n) {
  return fa_ref_arena_alloc(a, n, sizeof(double));
}

/* Forward bounds need the scores again. Up to this many keys they are kept, because they stay in the cache
 * and recomputing costs more. A chain with more steps (softcap, bias) would also have to keep their
 * inputs. */
enum { KEPT_KEYS = 1024 };

static bool is_coarse(const fa_ref_call *c) {
  return c->twist && c->twist->coarse.to.bits > 0;
}

bool fa_ref_keeps_scores(const fa_ref_call *c) {
  const fa_problem *p = c->p;
  return !is_coarse(c) && c->profile && c->max_sk <= KEPT_KEYS && p->softcap <= 0 && !p->alibi.present &&
         !p->bias.present && !p->score_mod;
}

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

/* Lays out the arrays from `base`; with NULL, only measures. Returns their size in bytes. */
static size_t lay_out(fa_ref_scratch *s, const fa_ref_call *c, bool backward, char *base) {
  fa_ref_arena to = {base, 0};
  int64_t m = least(FA_BLOCK_M, c->max_sq), n = least(FA_BLOCK_N, c->max_sk);
  int64_t wide = c->d > c->dv ? c->d : c->dv;
  s->k = take(&to, c->max_sk * c->d);
  s->v = take(&to, c->max_sk * c->dv);
  s->q = take(&to, m * c->d);
  s->s = take(&to, m * n);
  s->z = take(&to, n);
  s->acc = take(&to, m * wide);
  if (is_coarse(c)) s->part = take(&to, 2 * (m > n ? m : n) * (wide > n ? wide : n));
  s->m = take(&to, m);
  s->l = take(&to, m);
  s->key_m = c->p->sinks.present ? take(&to, m) : s->m;
  s->key_l = c->p->sinks.present ? take(&to, m) : s->l;
  s->th = take(&to, c->p->softcap > 0 && (backward || c->profile) ? m * n : 0);
  if (!backward) {
    if (fa_ref_keeps_scores(c)) s->scores = take(&to, m * c->max_sk);
    return to.used;
  }
  s->o = take(&to, m * c->dv);
  s->d_o = take(&to, m * c->dv);
  s->dp = take(&to, m * n);
  s->dk = take(&to, c->max_sk * c->d);
  s->dv = take(&to, c->max_sk * c->dv);
  s->rest = take(&to, m);
  s->delta = take(&to, m);
  return to.used;
}

fa_status fa_ref_scratch_init(fa_ref_scratch *s, const fa_ref_call *c, bool backward, fa_error *err) {
  *s = (fa_ref_scratch){0};
  fa_ref_scratch measure = {0};
  size_t bytes = lay_out(&measure, c, backward, NULL);
  void *arena = NULL;
  if (posix_memalign(&arena, 64, bytes + 64) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "reference: out of memory: %zu bytes of scratch", bytes);
  lay_out(s, c, backward, arena);
  s->arena = arena;
  fa_status status = fa_ref_mod_scratch_init(&s->mod, c, backward || c->profile, err);
  if (status != FA_OK) fa_ref_scratch_free(s);
  return status;
}

void fa_ref_scratch_free(fa_ref_scratch *s) {
  fa_ref_mod_scratch_free(s->mod);
  free(s->arena);
  *s = (fa_ref_scratch){0};
}

void fa_ref_scratch_head(fa_ref_scratch *s, const fa_ref_call *c, const fa_ref_sequence *e, int64_t hk) {
  if (s->e == e && s->hk == hk) return;
  fa_ref_load_k(c, FA_T_K, e, hk, 0, e->sk, s->k);
  fa_ref_load_k(c, FA_T_V, e, hk, 0, e->sk, s->v);
  s->e = e;
  s->hk = hk;
}
