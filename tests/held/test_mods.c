/* The reference by hand where it reads lists and expressions, and what is wanted of pairs that nobody sees. */
#include "ref/mods/tile.h"
#include "ref/reference.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- block lists ---- */

static void move_list(fa_tensors *in, fa_tensor_id id, fa_int32_array *to) {
  const int64_t n = fa_tensor_count(&in->t[id]);
  to->v = calloc((size_t)n + 1, sizeof *to->v);
  to->n = n;
  for (int64_t e = 0; e < n; ++e) {
    int64_t at[FA_MAX_RANK];
    fa_tensor_unravel(&in->t[id], e, at);
    to->v[e] = (int32_t)fa_tensor_get(&in->t[id], at);
  }
  in->t[id].data = NULL; /* its memory belongs to the set */
}

/* Lists in the problem itself say what the same lists say as tensors. */
static void test_own_lists(void) {
  static const char *const texts[] = {
      "{\"family\":\"flex\",\"head_dim\":8,\"batch\":2,\"heads_q\":2,\"seqlen_q\":64,\"seqlen_k\":80,"
      "\"block_sparse\":{\"q_block\":16,\"kv_block\":16,\"density\":0.5,\"seed\":\"1\"}}",
      "{\"family\":\"flex\",\"head_dim\":8,\"batch\":2,\"heads_q\":3,\"seqlen_q\":70,\"seqlen_k\":65,"
      "\"block_sparse\":{\"q_block\":8,\"kv_block\":32,\"density\":0.4,\"seed\":\"2\"}}",
      "{\"family\":\"flex\",\"head_dim\":8,\"seqlen_q\":16,\"seqlen_k\":80,"
      "\"block_sparse\":{\"q_block\":16,\"kv_block\":16,\"density\":0.5,\"seed\":\"1\"}}"}; /* one list */
  for (int i = 0; i < (int)(sizeof texts / sizeof *texts); ++i) {
    const fa_ref_options opt = {.n_threads = 1};
    fa_tensors in;
    fa_wants given = {0}, own = {0};
    fa_case c = case_of(texts[i], &in);
    fa_block_sparse *s = &c.problem.block_sparse;
    REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &given, NULL) == FA_OK);
    move_list(&in, FA_T_KV_NUM_BLOCKS, &s->kv_num_blocks);
    move_list(&in, FA_T_KV_INDICES, &s->kv_indices);
    move_list(&in, FA_T_FULL_KV_NUM_BLOCKS, &s->full_kv_num_blocks);
    move_list(&in, FA_T_FULL_KV_INDICES, &s->full_kv_indices);
    REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &own, NULL) == FA_OK);
    int64_t empty = 0;
    for (int64_t e = 0; e < given.t[FA_T_O].n; ++e) {
      CHECK(given.t[FA_T_O].value[e] == own.t[FA_T_O].value[e]);
      empty += own.t[FA_T_O].value[e] == 0;
    }
    CHECK(empty < given.t[FA_T_O].n);
    fa_wants_free(&given);
    fa_wants_free(&own);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* Lists made from a mask that goes by head name the blocks with a visible pair, in order. */
static void test_made_lists(void) {
  fa_tensors in;
  fa_int32_array list[4];
  fa_case c = case_of(
      "{\"family\":\"flex\",\"head_dim\":8,\"batch\":2,\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":40,\"mask_"
      "mod\":"
      "\"q_idx + 9 * h >= kv_idx\",\"block_sparse\":{\"q_block\":8,\"kv_block\":8,\"from\":\"mask_mod\"}}",
      &in);
  REQUIRE(fa_ref_block_lists(&c.problem, &in, list, NULL) == FA_OK);
  REQUIRE(list[0].n == 2 * 2 * 3 && list[1].n == list[0].n * 5);
  for (int64_t row = 0; row < list[0].n; ++row) {
    const int64_t h = row / 3 % 2, last = row % 3 == 2 ? 19 : row % 3 * 8 + 7; /* row of the block */
    bool named[5] = {false};
    for (int kind = 0; kind < 4; kind += 2)
      for (int n = 0; n < list[kind].v[row]; ++n) {
        const int32_t k = list[kind + 1].v[row * 5 + n];
        CHECK(k >= 0 && k < 5 && !named[k] && (n == 0 || k > list[kind + 1].v[row * 5 + n - 1]));
        named[k] = true;
      }
    for (int k = 0; k < 5; ++k)
      CHECK_MSG(named[k] == (8 * k <= last + 9 * h), "row %lld, block %d", (long long)row, k);
  }
  for (int i = 0; i < 4; ++i) free(list[i].v);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* Of two sequences, whose masks differ by entry, and of one whose mask is that of all heads. */
static void test_lists_by_entry(void) {
  static const char *const masks[] = {"q_idx + 9 * b >= kv_idx", "q_idx >= kv_idx"};
  for (int which = 0; which < 2; ++which) {
    fa_tensors in;
    fa_int32_array list[4];
    char text[300];
    snprintf(text, sizeof text,
             "{\"family\":\"flex\",\"head_dim\":8,\"batch\":2,\"heads_q\":2,\"seqlen_q\":20,\"seqlen_k\":40,"
             "\"mask_mod\":"
             "\"%s\",\"block_sparse\":{\"q_block\":8,\"kv_block\":8,\"from\":\"mask_mod\"}}",
             masks[which]);
    fa_case c = case_of(text, &in);
    REQUIRE(fa_ref_block_lists(&c.problem, &in, list, NULL) == FA_OK);
    for (int64_t row = 0; row < list[0].n; ++row) {
      const int64_t b = row / 6, last = row % 3 == 2 ? 19 : row % 3 * 8 + 7, end = last + (which ? 0 : 9 * b);
      CHECK(list[0].v[row] + list[2].v[row] == (end / 8 + 1 < 5 ? end / 8 + 1 : 5));
    }
    for (int i = 0; i < 4; ++i) free(list[i].v);
    fa_tensors_free(&in);
    fa_case_free(&c);
  }
}

/* Sequences of as many keys, but of 5 rows and of 20. */
static void test_lists_of_packed(void) {
  fa_tensors in;
  fa_int32_array list[4];
  fa_case c =
      case_of("{\"family\":\"flex\",\"head_dim\":8,\"cu_seqlens_q\":[0,5,25],\"cu_seqlens_k\":[0,40,80],"
              "\"mask_mod\":\"q_idx >= kv_idx\",\"block_sparse\":{\"q_block\":8,\"kv_block\":8,"
              "\"from\":\"mask_mod\"}}",
              &in);
  static const int want[] = {1, 0, 0, 1, 2, 3};
  REQUIRE(fa_ref_block_lists(&c.problem, &in, list, NULL) == FA_OK && list[0].n == 6);
  for (int64_t row = 0; row < 6; ++row) CHECK(list[0].v[row] + list[2].v[row] == want[row]);
  for (int i = 0; i < 4; ++i) free(list[i].v);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* A tile of keys of which no block is listed, before one that has one: gradients of what the latter reads. */
static void test_tile_passed_over(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants forward = {0}, gradients = {0};
  fa_case c = case_of("{\"family\":\"flex\",\"head_dim\":8,\"seqlen_q\":16,\"seqlen_k\":640,\"score_mod\":"
                      "\"score + w[kv_idx]\",\"buffers\":{\"w\":{"
                      "\"shape\":[640],\"grad\":true}},\"block_sparse\":{\"q_block\":16,\"kv_block\":128,"
                      "\"kv_num_blocks\":[[[1]]],\"kv_indices\":[["
                      "[[4,0,0,0,0]]]]}}",
                      &in);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK &&
          fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &gradients, NULL) == FA_OK);
  const fa_want *w = &gradients.t[FA_T_DBUFFER_0];
  CHECK(w->n == 640);
  for (int64_t e = 0; e < w->n; ++e) CHECK((w->value[e] != 0) == (e >= 512));
  fa_wants_free(&forward);
  fa_wants_free(&gradients);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* How many elements of dQ have no finite bound where dP may be 100, and V is large in the first tile of keys; lists: 1 names a block of
 * the last tile, 2 one of the first too. */
static int unbounded(int lists) {
  char text[300];
  fa_tensors in;
  fa_wants forward = {0}, gradients = {0};
  snprintf(text, sizeof text,
           "{\"family\":\"flex\",\"head_dim\":8,\"seqlen_q\":16,\"seqlen_k\":640,\"block_sparse\":{"
           "\"q_block\":16,\"kv_block\":128,\"kv_num_blocks\":[[[%d]]],\"kv_indices\":[[[[4,0,0,0,0]]]]}}",
           lists);
  fa_case c = case_of(text, &in);
  fa_profile profile = fa_profile_get("mma-ampere", c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  profile.u_dp = 0x1p-11, profile.max_dp = 100;
  for (int64_t j = 0; j < 256; ++j)
    fa_tensor_set(&in.t[FA_T_V], (int64_t[FA_MAX_RANK]){0, j, 0, j % 8}, 30000);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK &&
          fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &gradients, NULL) == FA_OK);
  int n = 0;
  for (int64_t e = 0; e < gradients.t[FA_T_DQ].n; ++e)
    n += !isfinite(fa_want_bound(&gradients.t[FA_T_DQ], e));
  fa_wants_free(&forward);
  fa_wants_free(&gradients);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return n;
}

/* What overflows in a tile that no list names takes no bound away: no kernel visits it. */
static void test_overflow_passed_over(void) {
  const int passed_over = unbounded(1), visited = unbounded(2);
  CHECK_MSG(passed_over == 0 && visited == 16 * 8, "%d, %d", passed_over, visited);
}

/* ---- what expressions may not do ---- */

static fa_status status_by(const char *text, const char *profile, bool backward, fa_error *err) {
  fa_tensors in;
  fa_wants forward = {0}, gradients = {0};
  fa_case c = case_of(text, &in);
  const fa_profile by = profile ? fa_profile_get(profile, c.problem.dtype) : (fa_profile){0};
  const fa_ref_options opt = {.n_threads = 1, .profile = profile ? &by : NULL};
  fa_status status = fa_ref_forward(&c.problem, &in, &opt, &forward, err);
  if (status == FA_OK && backward)
    status = fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &gradients, err);
  fa_wants_free(&forward);
  fa_wants_free(&gradients);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return status;
}

static fa_status status_of(const char *text, bool backward, fa_error *err) {
  return status_by(text, NULL, backward, err);
}

/* Only the first keys' numbers are too large for an integer. */
static void test_large_integers(void) {
  fa_error err = {""};
  CHECK(status_of("{\"family\":\"flex\",\"seqlen_q\":2,\"seqlen_k\":80,\"head_dim\":8,\"mask_mod\":\"(80000 "
                  "- kv_idx * 1000) * "
                  "30000 > 0\"}",
                  false, &err) == FA_ERR_INPUT);
  CHECK(status_of("{\"family\":\"flex\",\"seqlen_q\":2,\"seqlen_k\":80,\"head_dim\":8,\"mask_mod\":\"(80000 "
                  "- kv_idx * 1000) * "
                  "20000 > 0\"}",
                  false, &err) == FA_OK);
  CHECK(status_of(
            "{\"family\":\"flex\",\"seqlen_q\":2,\"seqlen_k\":80,\"head_dim\":8,\"mask_mod\":\"(-2147483600 "
            "- kv_idx) < 0\"}",
            false, &err) == FA_ERR_INPUT);
}

/* A root has no slope at 0. */
static void test_no_slope(void) {
  static const char text[] = "{\"family\":\"flex\",\"seqlen_q\":2,\"seqlen_k\":9,\"head_dim\":8,\"score_"
                             "mod\":\"sqrt(score - score)\"}";
  fa_error err = {""};
  CHECK(status_of(text, false, &err) == FA_OK);
  CHECK(status_of(text, true, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "no finite derivative"), "%s", err.text);
}

#define FLEX_F32                                                                                             \
  "{\"family\":\"flex\",\"dtype\":\"f32\",\"seqlen_q\":2,\"seqlen_k\":9,\"head_dim\":8,\"score_mod\":"

/* A score of which nothing is known is that of the sixth key. */
static void test_which_key(void) {
  fa_error err = {""};
  CHECK(status_by(FLEX_F32 "\"kv_idx == 5 ? score * 1e12 : score\"}", "simt-f32", false, &err) ==
        FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "may move the score") && strstr(err.text, "kv_idx 5"), "%s", err.text);
}

/* Of several pairs the first is told, though blocks of later rows are computed before it. */
static void test_first_pair(void) {
  fa_error err = {""};
  CHECK(status_of("{\"family\":\"flex\",\"seqlen_q\":300,\"seqlen_k\":9,\"heads_q\":2,\"head_dim\":8,\"score_"
                  "mod\":\"log(-1.0 - "
                  "score * 0)\"}",
                  false, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "at b 0, h 0, q_idx 0, kv_idx 0"), "%s", err.text);
}

/* Of two reasons at one pair the first is told: the value, before its errors are asked. */
static void test_first_reason(void) {
  fa_error err = {""};
  CHECK(status_by(FLEX_F32 "\"sqrt(-1e-12 - (score - score))\"}", "simt-f32", false, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "has no value"), "%s", err.text);
}

/* Derivatives are numbers, but on the way there they may exceed float32. */
static void test_unsure_slope(void) {
  static const char text[] = FLEX_F32 "\"score * 1e-30 * 1e-9 * 1e20 * 1e19\"}";
  fa_error err = {""};
  CHECK(status_by(text, "simt-f32", false, &err) == FA_OK && status_of(text, true, &err) == FA_OK);
  CHECK(status_by(text, "simt-f32", true, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "rounding decides whether there is a finite derivative"), "%s", err.text);
}

/* Of the score there is a derivative, of the buffer's element there is none. */
static void test_no_slope_of_a_buffer(void) {
  static const char text[] =
      FLEX_F32 "\"score + sqrt(x[kv_idx] - x[kv_idx])\",\"buffers\":{\"x\":{\"shape\":[9]}}}";
  fa_error err = {""};
  CHECK(status_of(text, false, &err) == FA_OK);
  CHECK(status_of(text, true, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "no finite derivative"), "%s", err.text);
}

/* A node before the first has no part in derivatives, and a row that fills all lanes none in the next node's. */
static void test_all_lanes(void) {
  fa_expr_node node[] = {{.op = FA_EXPR_NEG, .type = FA_EXPR_FLOAT, .n_args = 1, .arg = {1}},
                         {.op = FA_EXPR_SCORE, .type = FA_EXPR_FLOAT},
                         {.op = FA_EXPR_NEG, .type = FA_EXPR_FLOAT, .n_args = 1, .arg = {0}}};
  const fa_expr e = {.node = node + 1, .n = 2, .root = 1};
  double score[FA_EXPR_LANES] = {0};
  const fa_ref_pairs p = {.n = FA_EXPR_LANES, .seqlen_q = 1, .seqlen_k = FA_EXPR_LANES, .score = score};
  fa_ref_expr x;
  REQUIRE(fa_ref_expr_init(&x, &e, NULL, NULL) == FA_OK);
  fa_ref_expr_eval(&x, &p);
  fa_ref_expr_derive(&x, FA_EXPR_LANES);
  for (int lane = 0; lane < FA_EXPR_LANES; ++lane) {
    double of_score, of_root, error;
    fa_ref_expr_share(&x, 0, lane, &of_score, &error);
    fa_ref_expr_share(&x, 1, lane, &of_root, &error);
    CHECK(of_score == -1 && of_root == 1);
  }
  CHECK(x.derivative[0] == -1);
  fa_ref_expr_free(&x);
}

static void test_no_buffer(void) {
  fa_tensors in;
  fa_wants forward = {0};
  fa_error err = {""};
  fa_case c = case_of(FLEX_F32 "\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[9]}}}", &in);
  const fa_ref_options opt = {.n_threads = 1};
  in.t[FA_T_BUFFER_0].data = NULL; /* its memory belongs to the set */
  CHECK(fa_ref_forward(&c.problem, &in, &opt, &forward, &err) == FA_ERR_INPUT);
  CHECK_MSG(strcmp(err.text, "buffer x: there is no tensor of it") == 0, "%s", err.text);
  fa_wants_free(&forward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- bounds ---- */

static void test_want_bound(void) {
  double value[] = {0, 1, -3};
  float quant[] = {0.25f, 0, 0};
  fa_want w = {.dtype = FA_F32, .n = 3, .value = value};
  CHECK(fa_want_bound(&w, 0) == 0 && fa_want_bound(&w, 1) == 0x1p-24 && fa_want_bound(&w, 2) == 0x1p-23);
  w.quant = quant;
  CHECK(fa_want_bound(&w, 0) == 0.25 + 0x1p-26 && fa_want_bound(&w, 1) == 0x1p-24);
}

/* What no pair adds to is exactly 0. */
static void test_hidden_bias(void) {
  fa_tensors in;
  fa_wants forward = {0}, gradients = {0};
  fa_case c = case_of("{\"family\":\"memeff\",\"seqlen_q\":5,\"head_dim\":8,\"mask\":{\"type\":\"causal\"},"
                      "\"bias\":{\"shape\":[1,1,"
                      "\"q\",\"k\"],\"grad\":true}}",
                      &in);
  const fa_profile profile = fa_profile_get("simt-f32", c.problem.dtype);
  const fa_ref_options opt = {.n_threads = 1, .profile = &profile};
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK &&
          fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &gradients, NULL) == FA_OK);
  const fa_want *w = &gradients.t[FA_T_DBIAS];
  CHECK(w->n == 25);
  for (int64_t e = 0; e < w->n; ++e) CHECK((fa_want_bound(w, e) == 0) == (e % 5 > e / 5));
  fa_wants_free(&forward);
  fa_wants_free(&gradients);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_own_lists();
  test_made_lists();
  test_lists_by_entry();
  test_lists_of_packed();
  test_tile_passed_over();
  test_overflow_passed_over();
  test_large_integers();
  test_no_slope();
  test_which_key();
  test_first_pair();
  test_first_reason();
  test_unsure_slope();
  test_no_slope_of_a_buffer();
  test_all_lanes();
  test_no_buffer();
  test_want_bound();
  test_hidden_bias();
  return check_done();
}
