#include "fuzz/untrusted/hidden.h"

#include "cases/base/rng.h"
#include "cases/tensors/table.h"
#include "fuzz/coverage/words.h"
#include "fuzz/generate/draw.h"
#include "report/require.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 40
#define DRAWS 300  /* of each profile; 2 microseconds each */
#define LONGER 160 /* keys or rows that a neighbour may have more: it should not cost much more */

/* A case without a name is freed. */
static fa_status name_it(fa_case *c, int64_t i, fa_error *err) {
  char name[40];
  snprintf(name, sizeof name, "hidden-%lld", (long long)i);
  if (fa_case_set_name(c, name) == FA_OK) return FA_OK;
  fa_case_free(c);
  return fa_fail(err, FA_ERR_MEMORY, "out of memory");
}

/* The contract has the passes that the case asks for. */
static bool is_promised(const fa_rules *r, const fa_problem *p) {
  char why[256];
  const unsigned wanted = FA_PASS_FORWARD | (p->backward ? FA_PASS_BACKWARD : 0);
  return (wanted & ~fa_rules_promised(r, p, why, sizeof why)) == 0;
}

/* ---- what may change ---- */

static int64_t other_length(fa_rng *rng, int64_t n) {
  static const int64_t tiles[] = {16, 32, 64, 80, 96, 128, 176};
  const int64_t tile = tiles[fa_rng_below(rng, sizeof tiles / sizeof *tiles)];
  const int64_t edge = (n + fa_rng_below(rng, tile)) / tile * tile, beside = fa_rng_range(rng, -1, 1);
  const int64_t length =
      fa_rng_chance(rng, 0.3) ? fa_rng_range(rng, n > LONGER ? n - LONGER : 1, n + LONGER) : edge + beside;
  return length < 1 ? 1 : length;
}

static bool has_plain_lengths(const fa_problem *p) {
  return !fa_problem_is_varlen(p) && !p->kvcache.present && p->seqused_k.n == 0 && p->leftpad_k.n == 0 &&
         !p->block_sparse.present && p->n_captures == 0;
}

static void change_lengths(fa_rng *rng, fa_case *c) {
  fa_problem *p = &c->problem;
  const bool same = p->seqlen_q == p->seqlen_k;
  if (!has_plain_lengths(p)) return;
  if (fa_rng_chance(rng, 0.8)) p->seqlen_k = other_length(rng, p->seqlen_k);
  if (fa_rng_chance(rng, 0.5)) p->seqlen_q = other_length(rng, p->seqlen_q);
  if (same && fa_rng_chance(rng, 0.5)) p->seqlen_q = p->seqlen_k;
}

static void change_heads(fa_rng *rng, fa_case *c) {
  fa_problem *p = &c->problem;
  if (!has_plain_lengths(p) || p->alibi.present || !fa_rng_chance(rng, 0.3)) return;
  const int64_t group = p->heads_q / (p->heads_kv > 0 ? p->heads_kv : 1);
  p->heads_kv = fa_rng_range(rng, 1, p->heads_kv + 1);
  p->heads_q = group * p->heads_kv;
}

/* What a kernel for a few head dims alone would get wrong. */
static void change_head_dim(fa_rng *rng, fa_case *c) {
  fa_problem *p = &c->problem;
  const bool same = p->head_dim_v == p->head_dim, usual = p->scale == fa_default_scale(p->head_dim);
  if (p->kvcache.rotary_dim > 0 || !fa_rng_chance(rng, 0.25)) return;
  p->head_dim = 8 * fa_rng_range(rng, 1, 24);
  if (same) p->head_dim_v = p->head_dim;
  if (usual) p->scale = fa_default_scale(p->head_dim);
}

/* Sometimes all tensors alike, as fills that shape logits need it; else each for itself. */
static void change_fills(fa_rng *rng, fa_case *c) {
  if (fa_rng_chance(rng, 0.4)) fa_case_set_fill(c, (fa_fill)fa_rng_below(rng, FA_N_FILLS));
  for (int id = 0; id < FA_T_COUNT; ++id)
    if (fa_case_uses(c, (fa_tensor_id)id) && fa_rng_chance(rng, 0.5))
      c->fill[id] = (fa_fill)fa_rng_below(rng, FA_N_FILLS);
  fa_generate_settle_fills(c);
}

static void change_numbers(fa_rng *rng, fa_case *c) {
  fa_problem *p = &c->problem;
  if (p->dropout.p > 0) p->dropout.p = 0.05 + 0.6 * fa_rng_next_uniform(rng);
  if (p->mask.left > 0) p->mask.left += fa_rng_range(rng, -1, 1);
  if (p->mask.right > 0) p->mask.right += fa_rng_range(rng, -1, 1);
  c->repeat = c->repeat < 2 ? 2 : c->repeat;
}

fa_status fa_hidden_neighbour(const fa_rules *r, const fa_case *named, int64_t i, fa_case *out, bool *found,
                              fa_error *err) {
  fa_rng rng = fa_rng_make(fa_secret_number(&r->secret, "neighbour", (uint64_t)i, 0), 0);
  *found = false;
  for (int t = 0; t < TRIES; ++t) {
    if (fa_case_copy(out, named) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
    change_lengths(&rng, out);
    change_heads(&rng, out);
    change_head_dim(&rng, out);
    change_fills(&rng, out);
    change_numbers(&rng, out);
    free(out->place); /* it stands in no file */
    out->place = NULL;
    *found = fa_problem_complete(&out->problem) == FA_OK && fa_case_validate(out, NULL) == FA_OK &&
             is_promised(r, &out->problem);
    if (*found) return name_it(out, i, err);
    fa_case_free(out);
  }
  return FA_OK;
}

/* ---- what no named case has ---- */

#define MANY_KEYS 4096

fa_status fa_hidden_long(const fa_rules *r, const fa_case *named, int64_t i, fa_case *out, bool *found,
                         fa_error *err) {
  fa_rng rng = fa_rng_make(fa_secret_number(&r->secret, "long", (uint64_t)i, 0), 0);
  *found = false;
  if (!has_plain_lengths(&named->problem) || named->problem.bias.present) return FA_OK;
  if (fa_case_copy(out, named) != FA_OK) return fa_fail(err, FA_ERR_MEMORY, "out of memory");
  fa_problem *p = &out->problem;
  const int64_t group = p->heads_q / p->heads_kv, most = r->hello.limit[FA_LIMIT_SEQLEN_K].max;
  p->batch = 1;
  p->heads_kv = 1;
  p->heads_q = group < 4 ? group : 1;
  p->seqlen_q = fa_rng_range(&rng, 9, 40);
  p->seqlen_k = MANY_KEYS + fa_rng_range(&rng, 1, MANY_KEYS / 4);
  if (p->seqlen_k > most) p->seqlen_k = most;
  free(out->place);
  out->place = NULL;
  fa_case_set_fill(out, FA_FILL_NORMAL);
  *found = fa_problem_complete(p) == FA_OK && fa_case_validate(out, NULL) == FA_OK && is_promised(r, p);
  if (*found) return name_it(out, i, err);
  fa_case_free(out);
  return FA_OK;
}

static bool shows(const fa_rules *r, const fa_case *c, int word) {
  const bool needs_backward = fa_require_needs_backward(fa_word_at(word));
  return fa_words_of(&c->problem) >> word & 1 && (c->problem.backward || !needs_backward) &&
         c->expect == FA_EXPECT_PASS && is_promised(r, &c->problem);
}

/* A word that draws seldom have, if the case could have it. */
static void give_word(fa_case *c, int word) {
  fa_problem *p = &c->problem;
  if (strcmp(fa_word_at(word), "empty_lse") == 0)
    p->empty_lse = (fa_empty_lse)((fa_family_default_empty_lse(p->family) + 1) % 3);
  if (strcmp(fa_word_at(word), "padded_lse") == 0)
    p->lse_padded = p->cu_seqlens_q.n > 0 && p->family != FA_MERGE;
}

static int64_t fit(const fa_limit *l, int64_t n) {
  n = n > l->max ? l->max : n < l->min ? l->min : n;
  if (l->n_among > 0) return l->among[n % l->n_among];
  return n / l->multiple_of > 0 ? n / l->multiple_of * l->multiple_of : l->multiple_of;
}

/* Makes sizes smaller until the contract's limits let them through; few draws are by themselves. False: no case is left. */
static bool fit_limits(const fa_rules *r, fa_case *c) {
  const fa_limit *l = r->hello.limit;
  fa_problem *p = &c->problem;
  const bool same = p->head_dim == p->head_dim_v;
  char why[256];
  if (!has_plain_lengths(p) || fa_limits_allow(l, p, why, sizeof why)) return true;
  const int64_t group = fit(&l[FA_LIMIT_GROUP], p->heads_q / p->heads_kv),
                most = l[FA_LIMIT_HEADS_Q].max / group;
  p->batch = fit(&l[FA_LIMIT_BATCH], p->batch);
  p->heads_kv = fit(&l[FA_LIMIT_HEADS_KV], p->heads_kv < most ? p->heads_kv : most > 0 ? most : 1);
  p->heads_q = group * p->heads_kv;
  p->seqlen_q = fit(&l[FA_LIMIT_SEQLEN_Q], p->seqlen_q);
  p->seqlen_k = fit(&l[FA_LIMIT_SEQLEN_K], p->seqlen_k);
  p->head_dim = fit(&l[FA_LIMIT_HEAD_DIM], p->head_dim);
  p->head_dim_v = same ? p->head_dim : fit(&l[FA_LIMIT_HEAD_DIM_V], p->head_dim_v);
  return fa_problem_complete(p) == FA_OK && fa_case_validate(c, NULL) == FA_OK;
}

/* Their cases take many times as long as others that would do. */
static bool is_large(const char *profile) {
  return strcmp(profile, "long") == 0 || strcmp(profile, "rate-gpu") == 0;
}

fa_status fa_hidden_with_word(const fa_rules *r, int word, int64_t i, fa_case *out, bool *found,
                              fa_error *err) {
  const uint64_t seed = fa_secret_number(&r->secret, "word", (uint64_t)word, (uint64_t)i);
  const fa_generate_profile *profile = fa_generate_profiles;
  *found = false;
  for (int64_t draw = 0; draw < DRAWS; ++profile) {
    if (!profile->name) {
      profile = fa_generate_profiles;
      ++draw;
    }
    if (is_large(profile->name)) continue;
    const fa_status status = fa_generate_draw(profile->name, seed, i, draw, out, err);
    if (status != FA_OK) return status;
    give_word(out, word);
    if (!fit_limits(r, out)) {
      fa_case_free(out);
      continue;
    }
    *found = shows(r, out, word);
    if (*found) return name_it(out, i, err);
    fa_case_free(out);
  }
  return FA_OK;
}
