/* Where the reference finds things, by hand: the keys of a tile that rows see, the rows of a sample put together to blocks, the order of
 * its elements, the pages of a list of keys; a call of a single row; and whose turn it is. */
#include "ref/engine/call.h"
#include "ref/engine/sample.h"
#include "ref/engine/topk.h"
#include "ref/math/order.h"
#include "ref/reference.h"
#include "ref/tiles/gather.h"
#include "tests/held/case_of.h"

#include <string.h>

/* ---- tiles ---- */

/* Keys that no row sees, before those that some see and behind them, have no rows. */
static void test_spans(void) {
  static const int64_t lo[] = {4, 5, 6}, hi[] = {8, 9, 10};
  static const int first[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 3},
                   end[] = {0, 0, 0, 0, 1, 2, 3, 3, 3, 3, 3, 3};
  static fa_ref_rows r = {.n = 3};
  static fa_ref_tile_spans spans;
  for (int k = 0; k < 3; ++k) r.lo[k] = 100 + lo[k], r.hi[k] = 100 + hi[k];
  memset(&spans, 0x77, sizeof spans);
  fa_ref_tile_spans_init(&r, 100, 12, &spans);
  for (int j = 0; j < 12; ++j)
    CHECK_MSG(spans.key_end[j] == end[j] && (end[j] == 0 || spans.key_first[j] == first[j]),
              "key %d: %d to %d", j, (int)spans.key_first[j], (int)spans.key_end[j]);
}

/* ---- samples ---- */

/* Into how many blocks rows 0 and 257 of a head are put. */
static int64_t blocks_of(const char *text) {
  static const fa_ref_place rows[] = {{0, 0, 0}, {0, 0, 257}};
  const fa_ref_sample sample = {.n_rows = 2, .row = rows};
  const fa_ref_options opt = {.n_threads = 1, .sample = &sample};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_ref_blocks blocks;
  fa_case c = case_of(text, &in);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_ref_gather(&call, false, &blocks, NULL) == FA_OK);
  const int64_t n = blocks.n;
  fa_ref_blocks_free(&blocks);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return n;
}

/* Rows of different blocks share one where both see whole tiles from the same first key on. */
static void test_gather(void) {
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8}") == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":500,\"head_dim\":8}") == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}") == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":500,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}") == 2);
  CHECK(
      blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8,\"mask\":{\"type\":\"window\",\"left\":0,"
                "\"right\":512}}") == 2);
}

/* In memory one head's row is beside another's, and a sample's elements come in the order of memory. */
static void test_order(void) {
  static const fa_ref_place rows[] = {{0, 0, 3}, {0, 1, 0}, {0, 1, 4}}, strips[] = {{0, 0, 256}, {0, 1, 0}};
  const fa_ref_sample sample = {.n_rows = 3, .n_strips = 2, .row = rows, .strip = strips};
  const fa_ref_options opt = {.n_threads = 1, .sample = &sample};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of("{\"seqlen_q\":5,\"seqlen_k\":300,\"heads_q\":2,\"head_dim\":8}", &in);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  const fa_want *wants[] = {&forward.t[FA_T_O], &forward.t[FA_T_LSE], &backward.t[FA_T_DK]};
  const int64_t n[] = {3, 3, 44 + 256};
  for (int i = 0; i < 3; ++i) {
    CHECK_MSG(wants[i]->n_spans == n[i], "%lld", (long long)wants[i]->n_spans);
    for (int64_t k = 1; k < wants[i]->n_spans; ++k)
      CHECK(wants[i]->span[k].first > wants[i]->span[k - 1].first);
  }
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- lists of keys ---- */

/* An entry that names a slot of another sequence's page names no key, be that the first page of all. */
static void test_pages(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_case c = case_of(
      "{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"heads_q\":4,\"batch\":2,\"seqlen_k\":128,\"mla\":{"
      "\"kv_lora_rank\":128,\"qk_rope_head_dim\":32,\"qk_nope_head_dim\":64},\"kvcache\":{\"len\":["
      "100,128],\"page_size\":64},\"topk\":{\"k\":64,\"seed\":\"1\"}}",
      &in);
  const fa_tensor *table = &in.t[FA_T_BLOCK_TABLE], *index = &in.t[FA_T_TOPK_INDICES];
  int64_t owner = 0, at[FA_MAX_RANK] = {0};
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t m = 0; m < 2; ++m)
      if (fa_tensor_get(table, (int64_t[FA_MAX_RANK]){b, m}) == 0) owner = b;
  if (owner == 1) { /* the first sequence has page 0, and the second one's list names its third slot */
    for (int64_t m = 0; m < 2; ++m) {
      const int64_t first[FA_MAX_RANK] = {0, m}, second[FA_MAX_RANK] = {1, m};
      const double page = fa_tensor_get(table, first);
      fa_tensor_set(table, first, fa_tensor_get(table, second));
      fa_tensor_set(table, second, page);
    }
  }
  at[0] = 1;
  fa_tensor_set(index, at, 2);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  CHECK(fa_ref_topk_list(&call, &call.entry[1], 0)[0] == -1);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- a single row ---- */

/* Summed in tiles whose sums are rounded: there are gradients. */
static void test_one_row(void) {
  const fa_ref_twist coarse = {
      .coarse = {.to = {.bits = 11, .lowest = -24, .max = 65504}, .tile = 16, .sum = true}};
  const fa_ref_options opt = {.n_threads = 1, .twist = &coarse};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of("{\"seqlen_q\":1,\"seqlen_k\":40,\"head_dim\":8}", &in);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  CHECK(backward.t[FA_T_DK].value[0] != 0 && backward.t[FA_T_DV].value[0] != 0);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- turns ---- */

static int64_t turns[8];
static bool watched;
void __real_fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn);
void __wrap_fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn);

/* One thread comes to a queue's turns one after another. */
void __wrap_fa_ref_order_wait(fa_ref_order *t, int64_t queue, int64_t turn) {
  REQUIRE(queue >= 0 && queue < 8);
  if (watched) CHECK_MSG(turn == turns[queue]++, "queue %lld, turn %lld", (long long)queue, (long long)turn);
  __real_fa_ref_order_wait(t, queue, turn);
}

/* The heads of sequences do not wait for each other. */
static void test_turns(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of(
      "{\"batch\":3,\"heads_q\":4,\"heads_kv\":2,\"seqlen_q\":600,\"seqlen_k\":9,\"head_dim\":8}", &in);
  watched = true;
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  for (int queue = 0; queue < 8; ++queue) CHECK((turns[queue] > 0) == (queue < 6));
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

int main(void) {
  test_spans();
  test_gather();
  test_order();
  test_pages();
  test_one_row();
  test_turns();
  return check_done();
}
