/* The reference where features meet that few kernels combine: every case of cases/mixed.json against the slow
 * attention, with its expressions written by hand as C; those of cases/masks.json; and rows whose keys can be counted on
 * fingers. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "ref/reference.h"
#include "tests/ref/differing.h"
#include "tests/support/check.h"
#include "tests/support/slow_attention.h"

#include <math.h>
#include <string.h>

typedef long double real;

/* ---- the expressions of the file ---- */

static real by_distance(const slow_pair *at, real s, real *slope) {
  *slope = 1;
  return s + 0.1f * slow_buffer(at, 0, at->h, 0) * (real)(at->j - at->i - at->sk + at->sq);
}
static real by_key_and_row(const slow_pair *at, real s, real *slope) {
  *slope = 1;
  return s + slow_buffer(at, 0, at->b, at->j) + slow_buffer(at, 1, at->i, 0);
}
static real by_head(const slow_pair *at, real s, real *slope) {
  *slope = 1 + 0.125L * slow_buffer(at, 0, at->h, 0);
  return s * *slope;
}
static void by_head_gradient(const slow_pair *at, real s, real g, slow_outputs *out) {
  slow_add(out, 0, at->h, g * 0.125L * s);
}
static real by_nearness(const slow_pair *at, real s, real *slope) {
  *slope = 1;
  return s - 0.05f * fabsl((real)(at->i - at->j));
}
static real by_order(const slow_pair *at, real s, real *slope) {
  *slope = 1;
  return s + 0.125L * (real)(at->j - at->i);
}
static int64_t at_most(int64_t n, int64_t most) {
  return n < most ? n : most;
}
static real by_table(const slow_pair *at, real s, real *slope) {
  *slope = 1;
  return s + slow_buffer(at, 0, at->b, at_most(at->j, 39));
}
static void by_table_gradient(const slow_pair *at, real s, real g, slow_outputs *out) {
  (void)s;
  slow_add(out, 0, at->b * 40 + at_most(at->j, 39), g);
}
static bool third_keys(const slow_pair *at) {
  return at->j % 3 != 1 && at->i + at->sk - at->sq >= at->j;
}
static bool other_eighth(const slow_pair *at) {
  return (at->i + at->b) / 8 != at->j / 8;
}
static bool same_document(const slow_pair *at) {
  return slow_buffer(at, 0, at->i, 0) == slow_buffer(at, 0, at->j, 0);
}
static bool not_thirds(const slow_pair *at) {
  return (at->i + at->j) % 3 != 0;
}
static bool fourth_rows(const slow_pair *at) {
  return at->i % 4 != 2 && at->i >= at->j;
}

static const struct {
  const char *name;
  slow_mods mods;
} written[] = {
    {"cache_score_mod", {.score = by_distance}},
    {"cache_score_mod_packed", {.score = by_key_and_row}},
    {"cache_mask_mod_leftpad", {.mask = third_keys}},
    {"cache_blocks_packed", {.mask = other_eighth}},
    {"varlen_blocks_mask_mod", {.mask = same_document}},
    {"flex_dropout", {.score = by_head, .gradient = by_head_gradient}},
    {"flex_dropout_mask", {.mask = not_thirds}},
    {"memeff_score_mod_dropout", {.score = by_nearness}},
    {"flash_score_mod", {.score = by_table, .gradient = by_table_gradient}},
    {"memeff_mask_mod", {.mask = fourth_rows}},
    {"chunk_flex", {.score = by_order}},
};

static const slow_mods *written_for(const fa_case *c) {
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i)
    if (strcmp(written[i].name, c->name) == 0) return &written[i].mods;
  return NULL;
}

/* ---- against the slow attention ---- */

static void test_case(const fa_case *c) {
  const slow_mods *mods = written_for(c);
  int64_t bad[FA_T_COUNT] = {0};
  CHECK_MSG((mods != NULL) == (c->problem.score_mod || c->problem.mask_mod), "%s: no transcription", c->name);
  slow_set_mods(mods);
  differing(c, &c->problem, bad);
  for (int id = 0; id < FA_T_COUNT; ++id)
    CHECK_MSG(bad[id] == 0, "%s: %lld elements of %s", c->name, (long long)bad[id],
              fa_tensor_id_name((fa_tensor_id)id));
  slow_set_mods(NULL);
}

/* ---- the comparison must be able to fail: one change in what the slow one computes ---- */

static bool lose_rows(fa_problem *p) { /* all entries start where the first one does */
  if (!p->kvcache.present || p->cu_seqlens_q.n < 3 || p->cu_seqlens_q.v[1] == 0) return false;
  const int32_t n = p->cu_seqlens_q.v[1];
  p->cu_seqlens_q.v[1] = n - 1;
  return true;
}
static bool turn_corner(fa_problem *p) {
  p->mask.align = p->mask.align == FA_ALIGN_TOP_LEFT ? FA_ALIGN_BOTTOM_RIGHT : FA_ALIGN_TOP_LEFT;
  return p->mask.type != FA_MASK_NONE && p->kvcache.present;
}
static bool share_bias(fa_problem *p) {
  const bool had = p->bias.present && p->bias.per_query && !p->backward;
  p->bias.per_query = false;
  return had;
}
static bool drop_bias(fa_problem *p) {
  const bool had = p->bias.present;
  p->bias.present = p->bias.grad = false;
  return had;
}
static bool drop_dropout(fa_problem *p) {
  const bool had = p->dropout.p > 0;
  p->dropout.p = 0;
  return had;
}
static bool drop_blocks(fa_problem *p) {
  const bool had = p->block_sparse.present && p->block_sparse.source != FA_BLOCKS_MASK_MOD;
  p->block_sparse.present = false;
  return had;
}
static bool drop_padding(fa_problem *p) {
  if (p->leftpad_k.n == 0 || p->leftpad_k.v[0] == 0) return false;
  --p->leftpad_k.v[0];
  return true;
}

static void test_failing(const fa_case_list *list) {
  static const struct {
    const char *name;
    bool (*change)(fa_problem *p);
  } changes[] = {{"rows", lose_rows},      {"corner", turn_corner},   {"bias row", share_bias},
                 {"bias", drop_bias},      {"dropout", drop_dropout}, {"blocks", drop_blocks},
                 {"padding", drop_padding}};
  for (size_t k = 0; k < sizeof changes / sizeof *changes; ++k) {
    int seen = 0;
    for (int64_t i = 0; i < list->n && seen < 2; ++i) {
      fa_problem other;
      REQUIRE(fa_problem_copy(&other, &list->v[i].problem) == FA_OK);
      slow_set_mods(written_for(&list->v[i]));
      if (changes[k].change(&other)) seen += differing(&list->v[i], &other, NULL) > 0;
      fa_problem_free(&other);
    }
    CHECK_MSG(seen >= 1, "%s: no case shows it", changes[k].name);
  }
  for (size_t i = 0; i < sizeof written / sizeof *written; ++i) { /* without its expression */
    slow_set_mods(NULL);
    for (int64_t k = 0; k < list->n; ++k)
      if (written_for(&list->v[k]) == &written[i].mods)
        CHECK_MSG(differing(&list->v[k], &list->v[k].problem, NULL) > 0, "%s: is not seen", written[i].name);
  }
}

/* ---- counted by hand ---- */

/* With queries of 0 every logit is 0: the LSE of a row is the logarithm of the number of keys that it sees. */
static const struct {
  const char *text;
  int n[12]; /* keys of each row, in the order of the LSE; -1: the end */
} counted[] = {
    /* 2 keys and 1 row; 5 keys and 3 rows, the last of which sees all 5 */
    {"\"family\":\"kvcache\",\"seqlen_k\":8,\"cu_seqlens_q\":[0,1,4],\"kvcache\":{\"len\":[2,5]},"
     "\"mask\":{\"type\":\"causal\"}",
     {2, 3, 4, 5, -1}},
    /* the same 7 keys, one of each entry new; the entry in the middle has no row */
    {"\"family\":\"kvcache\",\"seqlen_k\":8,\"cu_seqlens_q\":[0,1,1,4],\"kvcache\":{\"len\":[1,3,4],\"new\":"
     "1,"
     "\"page_size\":2},\"mask\":{\"type\":\"causal\"}",
     {2, 3, 4, 5, -1}},
    /* one key is left of each: of three rows only the last stands on it */
    {"\"family\":\"kvcache\",\"seqlen_k\":8,\"cu_seqlens_q\":[0,1,4],\"kvcache\":{\"len\":[2,5],\"leftpad\":["
     "1,4]},"
     "\"mask\":{\"type\":\"causal\"}",
     {1, 0, 0, 1, -1}},
    /* row i sees keys 0 .. i, of which there are two and five */
    {"\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":8,\"kvcache\":{\"len\":[2,5]},"
     "\"mask\":{\"type\":\"causal\",\"align\":\"top_left\"}",
     {1, 2, 2, 1, 2, 3, -1}},
    {"\"seqlen_q\":4,\"seqlen_k\":2,\"mask\":{\"type\":\"causal\",\"align\":\"top_left\"}", {1, 2, 2, 2, -1}},
    /* keys that are not less than the row, of the second entry alone: 5 - 0, 5 - 1, 5 - 2 */
    {"\"family\":\"kvcache\",\"seqlen_k\":8,\"cu_seqlens_q\":[0,1,4],\"kvcache\":{\"len\":[2,5]},"
     "\"mask_mod\":\"kv_idx >= q_idx && b == 1\"",
     {0, 5, 4, 3, -1}},
    /* blocks of 2 x 2 by entry. First: rows 0, 1 see block 1, of which the entry has one key; row 2 sees both.
     * Second: its only row sees block 0. */
    {"\"family\":\"flash\",\"cu_seqlens_q\":[0,3,4],\"cu_seqlens_k\":[0,3,7],\"block_sparse\":{\"q_block\":2,"
     "\"kv_block\":2,\"kv_num_blocks\":[[[1,2]],[[1,1]]],\"kv_indices\":[[[[1,0],[1,0]]],[[[0,1],[1,0]]]]}",
     {1, 1, 3, 2, -1}},
    /* the same lists over a cache with a hidden key in front: block 1 of the first entry is key 3 alone */
    {"\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":3,\"seqlen_k\":4,\"kvcache\":{\"len\":[4,4],"
     "\"leftpad\":[1,0]},"
     "\"block_sparse\":{\"q_block\":2,\"kv_block\":2,\"kv_num_blocks\":[[[1,2]],[[1,1]]],"
     "\"kv_indices\":[[[[1,0],[1,0]]],[[[0,1],[1,0]]]]}",
     {1, 1, 3, 2, 2, 2, -1}},
    /* a key in a new place in the document is another document: doc = row / 2 */
    {"\"family\":\"memeff\",\"cu_seqlens_q\":[0,3,4],\"cu_seqlens_k\":[0,5,6],\"mask_mod\":\"q_idx / 2 == "
     "kv_idx / 2\"",
     {2, 2, 2, 1, -1}},
    /* the first half of the bias hides: with a cache of 8, columns 0 .. 3; values of the others are 0 */
    {"\"family\":\"kvcache\",\"batch\":2,\"seqlen_q\":1,\"seqlen_k\":8,\"kvcache\":{\"len\":[3,8]},"
     "\"mask_mod\":\"kv_idx >= 4\",\"bias\":{\"shape\":[1,1,1,\"k\"],\"fill\":\"zero\"}",
     {0, 4, -1}},
};

static void test_counted(void) {
  for (size_t k = 0; k < sizeof counted / sizeof *counted; ++k) {
    char text[900];
    fa_case c;
    fa_tensors in;
    fa_wants want = {0};
    fa_error err = {""};
    const fa_ref_options opt = {.n_threads = 1};
    snprintf(text, sizeof text, "{%s,\"fill\":{\"q\":\"zero\",\"default\":\"normal\"},\"head_dim\":8}",
             counted[k].text);
    if (strstr(counted[k].text, "\"bias\""))
      snprintf(text, sizeof text, "{%s,\"fill\":{\"q\":\"zero\"},\"head_dim\":8}", counted[k].text);
    const fa_status status = fa_case_from_text(text, &c, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    if (status != FA_OK) continue;
    REQUIRE(fa_case_build(&c, &in, &err) == FA_OK);
    REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &want, &err) == FA_OK);
    int64_t n = 0;
    for (; counted[k].n[n] >= 0; ++n) {
      const double lse = want.t[FA_T_LSE].value[n], right = counted[k].n[n] ? log(counted[k].n[n]) : INFINITY;
      CHECK_MSG(lse == right || fabs(lse - right) < 1e-14, "counted %zu, row %lld: exp(LSE) = %g, %d keys", k,
                (long long)n, exp(lse), counted[k].n[n]);
    }
    CHECK_MSG(n == want.t[FA_T_LSE].n, "counted %zu: %lld rows", k, (long long)want.t[FA_T_LSE].n);
    fa_wants_free(&want);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

static bool widen_chunk(fa_problem *p) {
  p->mask.size += p->mask.type == FA_MASK_CHUNK;
  return p->mask.type == FA_MASK_CHUNK && p->seqlen_k > p->mask.size;
}
static bool drop_bits(fa_problem *p) {
  const bool had = p->mask_bits.present && p->mask_bits.density < 1;
  p->mask_bits.present = false;
  return had;
}

/* Some case must tell the change. */
static void test_told(const fa_case_list *list, bool (*change)(fa_problem *p)) {
  int64_t told = 0;
  for (int64_t i = 0; i < list->n; ++i) {
    fa_problem other;
    REQUIRE(fa_problem_copy(&other, &list->v[i].problem) == FA_OK);
    if (!list->v[i].problem.score_mod && change(&other)) told += differing(&list->v[i], &other, NULL) > 0;
    fa_problem_free(&other);
  }
  CHECK(told > 5);
}

static void test_masks(void) {
  fa_case_list list = {0};
  fa_error err = {""};
  const fa_status status = fa_case_file_load("cases/masks.json", NULL, &list, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(list.n > 30);
  for (int64_t i = 0; i < list.n; ++i) test_case(&list.v[i]);
  test_told(&list, widen_chunk);
  test_told(&list, drop_bits);
  fa_case_list_free(&list);
}

int main(void) {
  fa_case_list list = {0};
  fa_error err = {""};
  const fa_status status = fa_case_file_load("cases/mixed.json", NULL, &list, &err);
  CHECK_MSG(status == FA_OK, "%s", err.text);
  REQUIRE(list.n > 30);
  for (int64_t i = 0; i < list.n; ++i) test_case(&list.v[i]);
  test_failing(&list);
  test_counted();
  test_masks();
  fa_case_list_free(&list);
  return check_done();
}
