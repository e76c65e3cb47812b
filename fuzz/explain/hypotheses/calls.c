/* Parts of a call that are ignored: expressions, block lists, rotation, appending. */
#include "fuzz/explain/hypothesis.h"

static bool score_mod_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.score_mod = NULL;
  fa_mistake_say(m, "score_mod ignored");
  return x->p->score_mod != NULL;
}

static bool mask_mod_ignored(const fa_failure *x, int v, fa_mistake *m) {
  if (v == 1) {
    m->twist.mask_of_first_pair = true;
    fa_mistake_say(m, "mask_mod ignored in blocks whose first pair it shows");
    return x->p->mask_mod && x->p->block_sparse.present;
  }
  m->p.mask_mod = NULL;
  if (x->p->block_sparse.source == FA_BLOCKS_MASK_MOD) m->p.block_sparse.present = false;
  fa_mistake_say(m, "mask_mod ignored");
  return x->p->mask_mod != NULL;
}

static bool block_list_ignored(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.block_sparse.present = false;
  fa_mistake_say(m, "block lists ignored");
  return x->p->block_sparse.present;
}

static bool rotary_missing(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  m->p.kvcache.rotary_dim = 0;
  fa_mistake_say(m, "no rotation");
  return x->p->kvcache.present && x->p->kvcache.rotary_dim > 0;
}

static bool rotary_other_style(const fa_failure *x, int v, fa_mistake *m) {
  (void)v;
  const bool interleaved = x->p->kvcache.rotary_interleaved;
  m->p.kvcache.rotary_interleaved = !interleaved;
  fa_mistake_say(m,
                 interleaved ? "rotated in halves instead of pairs" : "rotated in pairs instead of halves");
  return x->p->kvcache.present && x->p->kvcache.rotary_dim > 2;
}

/* number: new keys */
static void new_keys_lost(const fa_ref_twist *t, const fa_ref_call *c, const fa_ref_sequence *e, int64_t i,
                          int64_t *lo, int64_t *hi) {
  (void)c, (void)i, (void)lo;
  if (*hi > e->sk - t->number[0]) *hi = e->sk - t->number[0];
}

static bool cache_not_appended(const fa_failure *x, int v, fa_mistake *m) {
  const int64_t n = x->p->kvcache.present ? x->p->kvcache.n_new : 0;
  if (v) {
    m->p.kvcache.n_new = 0;
  } else {
    m->twist.range = new_keys_lost;
    m->twist.number[0] = n;
  }
  fa_mistake_say(m, v ? "new keys not appended, and not counted" : "new keys not appended");
  return n > 0;
}

#define FORWARD FA_OF_FORWARD
const fa_hypothesis fa_hypotheses_of_calls[] = {
    {"score_mod_ignored", "score_mod is not applied", FA_OF_ALL, 1, score_mod_ignored},
    {"mask_mod_ignored", "mask_mod is not applied", FA_OF_ALL, 2, mask_mod_ignored},
    {"block_list_ignored", "all blocks are visited", FA_OF_ALL, 1, block_list_ignored},
    {"rotary_missing", "queries and new keys are not rotated", FORWARD, 1, rotary_missing},
    {"rotary_other_style", "other pairs of elements are rotated", FORWARD, 1, rotary_other_style},
    {"cache_not_appended", "the new keys are not seen", FORWARD, 2, cache_not_appended},
    {.name = NULL}};
