/* Where the reference finds things, by hand: a row of a tensor, a head's slope, the keys of a tile that rows see, the rows of a
 * sample put together to blocks, the order of its elements, the pages of a list of keys; a call of a single row; and whose turn it
 * is. */
#include "ref/engine/call.h"
#include "ref/engine/sample.h"
#include "ref/engine/topk.h"
#include "ref/math/order.h"
#include "ref/merge/row.h"
#include "ref/reference.h"
#include "ref/tiles/gather.h"
#include "ref/tiles/lse.h"
#include "ref/tiles/score.h"
#include "tests/held/case_of.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- inputs ---- */

/* Every second number of 16 bits. */
static void test_strided_row(void) {
  static const uint16_t bits[] = {0x3f80, 0x7fc0, 0x4000, 0x7fc0, 0x4040};
  const fa_tensor t = {.dtype = FA_BF16};
  double row[3];
  fa_ref_load_row(&t, (const char *)bits, 2, 3, row);
  CHECK(row[0] == 1 && row[1] == 2 && row[2] == 3);
}

/* Slopes that only the problem has: of the heads of all sequences, or of one sequence's. */
static void test_slopes(void) {
  static float slopes[] = {1, 2, 3, 4, 5, 6};
  static const fa_tensors in;
  fa_problem p = {.alibi = {.present = true, .n = 6, .slopes = slopes}};
  const fa_ref_call c = {.p = &p, .in = &in, .heads_q = 3};
  CHECK(fa_ref_alibi_slope(&c, 1, 0) == 4 && fa_ref_alibi_slope(&c, 1, 2) == 6);
  p.alibi.n = 3;
  CHECK(fa_ref_alibi_slope(&c, 1, 0) == 1 && fa_ref_alibi_slope(&c, 1, 2) == 3);
}

/* An LSE that has lost what P depends on is not taken, one that is infinite is. */
static void test_given_lse(void) {
  static float given[] = {1, 0x1p24f, INFINITY, -INFINITY};
  const fa_tensor t = {.dtype = FA_F32, .rank = 3, .stride = {4, 4, 1}, .data = (char *)given};
  const fa_ref_sequence e = {.sq = 4};
  const fa_ref_call c = {.given_lse = &t};
  CHECK(fa_ref_lse_is_given(&c, &e, 0, 0) && !fa_ref_lse_is_given(&c, &e, 0, 1));
  CHECK(fa_ref_lse_is_given(&c, &e, 0, 2) && fa_ref_lse_is_given(&c, &e, 0, 3));
}

/* One part of three, without their axis. */
static void test_part(void) {
  static float o[3 * 2 * 5];
  const fa_tensor t = {
      .dtype = FA_F32, .rank = 3, .shape = {3, 2, 5}, .stride = {10, 5, 1}, .data = (char *)o};
  const fa_tensor part = fa_merge_part(&t, 2);
  CHECK(part.rank == 2 && part.shape[0] == 2 && part.shape[1] == 5 && part.data == (char *)&o[20]);
  CHECK(part.stride[0] == 5 && part.stride[1] == 1);
}

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
static int64_t blocks_of(const char *text, bool apart) {
  static const fa_ref_place rows[] = {{0, 0, 0}, {0, 0, 257}};
  const fa_ref_sample sample = {.n_rows = 2, .row = rows};
  const fa_ref_options opt = {.n_threads = 1, .sample = &sample};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_ref_blocks blocks;
  fa_case c = case_of(text, &in);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_ref_gather(&call, apart, &blocks, NULL) == FA_OK);
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
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8}", false) == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8}", true) == 2);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":500,\"head_dim\":8}", false) == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}",
                  false) == 1);
  CHECK(blocks_of("{\"seqlen_q\":512,\"seqlen_k\":500,\"head_dim\":8,\"mask\":{\"type\":\"causal\"}}",
                  false) == 2);
  CHECK(
      blocks_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8,\"mask\":{\"type\":\"window\",\"left\":0,"
                "\"right\":512}}",
                false) == 2);
}

/* A row that joins another's block has its own place there, and sees its own keys. */
static void test_own_keys(void) {
  static const fa_ref_place rows[] = {{0, 0, 3}, {0, 0, 256 + 7}};
  const fa_ref_sample sample = {.n_rows = 2, .row = rows};
  const fa_ref_options opt = {.n_threads = 1, .sample = &sample};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_ref_blocks blocks;
  fa_case c =
      case_of("{\"seqlen_q\":512,\"seqlen_k\":512,\"head_dim\":8,\"mask\":{\"type\":\"window\",\"left\":2,"
              "\"right\":1}}",
              &in);
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  REQUIRE(fa_ref_gather(&call, false, &blocks, NULL) == FA_OK);
  for (int64_t n = 0; n < 2; ++n) {
    const fa_ref_rows *r = &blocks.block[blocks.n == 1 ? 0 : n];
    const int64_t i = rows[n].i, slot = i % 256;
    CHECK(!r->left_out[slot] && r->row[slot] == i && r->lo[slot] == i - 2 && r->hi[slot] == i + 2);
  }
  fa_ref_blocks_free(&blocks);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* How the rows of backwards were put together since the last time it was asked: apart or not; -1: not at all. */
static int were_apart = -1;
fa_status __real_fa_ref_gather(const fa_ref_call *c, bool apart, fa_ref_blocks *out, fa_error *err);
fa_status __wrap_fa_ref_gather(const fa_ref_call *c, bool apart, fa_ref_blocks *out, fa_error *err);
fa_status __wrap_fa_ref_gather(const fa_ref_call *c, bool apart, fa_ref_blocks *out, fa_error *err) {
  were_apart = apart;
  return __real_fa_ref_gather(c, apart, out, err);
}

static int backward_apart(const fa_profile *profile, bool generic, double scale) {
  static const fa_ref_place rows[] = {{0, 0, 1}}, strips[] = {{0, 0, 0}};
  const fa_ref_sample sample = {.n_rows = 1, .n_strips = 1, .row = rows, .strip = strips};
  const fa_ref_options opt = {.n_threads = 1, .profile = profile, .generic = generic, .sample = &sample};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of("{\"seqlen_q\":5,\"seqlen_k\":9,\"head_dim\":8}", &in);
  c.problem.scale = scale;
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  were_apart = -1;
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return were_apart;
}

/* Rows of a backward stay apart where the bound of one depends on the others: where an exponential may be unknown, in data that are
 * no noise or whose scores are all 0, and in narrow formats. */
static void test_rows_apart(void) {
  const fa_profile wide = fa_profile_get("simt-f32", FA_F16);
  fa_profile narrow = wide;
  narrow.operand_max[FA_PRODUCT_DP] = 65504;
  CHECK(backward_apart(NULL, false, 0.3) == 0 && backward_apart(&wide, true, 0.3) == 0);
  CHECK(backward_apart(&wide, false, 0.3) == 1 && backward_apart(&wide, true, 0) == 1);
  CHECK(backward_apart(&narrow, true, 0.3) == 1);
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

/* Two sequences of latent attention over lists of keys: the most keys, each one's, and the keys of a page. */
#define LISTS(keys, len, page)                                                                               \
  "{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"heads_q\":4,\"batch\":2,\"seqlen_k\":" keys                  \
  ",\"mla\":{\"kv_lora_rank\":128,\"qk_rope_head_dim\":32,\"qk_nope_head_dim\":64},\"kvcache\":{\"len\":"    \
  "[" len "],\"page_size\":" page "},\"topk\":{\"k\":64,\"seed\":\"1\"}}"

/* Pages of one key each: an entry of a list is the page's number. */
static void test_pages_of_one(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_case c = case_of(LISTS("9", "9,5", "1"), &in);
  const fa_tensor *table = &in.t[FA_T_BLOCK_TABLE], *index = &in.t[FA_T_TOPK_INDICES];
  const int64_t at[FA_MAX_RANK] = {1}, third[FA_MAX_RANK] = {1, 3};
  fa_tensor_set(index, at, fa_tensor_get(table, third));
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  CHECK(fa_ref_topk_list(&call, &call.entry[1], 0)[0] == 3);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* How often a row names one key does not depend on how often the row before it did. */
static void test_times(void) {
  const fa_ref_options opt = {.n_threads = 1};
  fa_tensors in;
  fa_wants out = {0};
  fa_ref_call call;
  fa_case c = case_of(LISTS("64", "64,64", "64"), &in);
  const fa_tensor *table = &in.t[FA_T_BLOCK_TABLE], *index = &in.t[FA_T_TOPK_INDICES];
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t n = 0; n < 64; ++n) {
      const int64_t in_list[FA_MAX_RANK] = {b, index->rank == 2 ? n : 0, n}, page[FA_MAX_RANK] = {b, 0};
      fa_tensor_set(index, in_list, 64 * fa_tensor_get(table, page) + (n < 40 ? 3 : 4));
    }
  REQUIRE(fa_ref_call_init(&call, &c.problem, &in, &opt, &out, NULL) == FA_OK);
  for (int b = 0; b < 2; ++b) CHECK(fa_ref_topk_most(&call, &call.entry[b], 0) == 40);
  fa_ref_call_free(&call);
  fa_wants_free(&out);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* ---- a bias of all rows ---- */

/* The gradient of a bias of zeros, [300][5] or one row of it. */
static fa_wants dbias_of(const char *rows) {
  const fa_ref_options opt = {.n_threads = 1};
  char text[200];
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  snprintf(text, sizeof text,
           "{\"family\":\"memeff\",\"seqlen_q\":300,\"seqlen_k\":5,\"head_dim\":8,\"bias\":{\"shape\":[1,1,%"
           "s,\"k\"],"
           "\"grad\":true}}",
           rows);
  fa_case c = case_of(text, &in);
  const fa_tensor *bias = &in.t[FA_T_BIAS];
  for (int64_t i = 0; i < bias->shape[2]; ++i)
    for (int64_t j = 0; j < 5; ++j) fa_tensor_set(bias, (int64_t[FA_MAX_RANK]){0, 0, i, j}, 0);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  fa_wants_free(&forward);
  fa_tensors_free(&in);
  fa_case_free(&c);
  return backward;
}

/* It has the gradients of all blocks of rows. */
static void test_bias_of_all_rows(void) {
  fa_wants all = dbias_of("\"q\""), one = dbias_of("1");
  const fa_want *each = &all.t[FA_T_DBIAS], *sum = &one.t[FA_T_DBIAS];
  REQUIRE(each->n == 1500 && sum->n == 5);
  for (int j = 0; j < 5; ++j) {
    double added = 0;
    for (int i = 0; i < 300; ++i) added += each->value[i * 5 + j];
    CHECK_MSG(fabs(added - sum->value[j]) < 1e-9, "%d: %g, not %g", j, sum->value[j], added);
  }
  fa_wants_free(&all);
  fa_wants_free(&one);
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

/* Where sums in few bits have their order, a head's blocks are one item, however small the tile. */
static void test_one_item(void) {
  const fa_ref_twist coarse = {
      .coarse = {.to = {.bits = 11, .lowest = -24, .max = 65504}, .tile = 1, .sum = true}};
  const fa_ref_options opt = {.n_threads = 1, .twist = &coarse};
  fa_tensors in;
  fa_wants forward = {0}, backward = {0};
  fa_case c = case_of("{\"seqlen_q\":1200,\"seqlen_k\":3,\"head_dim\":8}", &in);
  memset(turns, 0, sizeof turns);
  REQUIRE(fa_ref_forward(&c.problem, &in, &opt, &forward, NULL) == FA_OK);
  REQUIRE(fa_ref_backward(&c.problem, &in, NULL, NULL, &forward, &opt, &backward, NULL) == FA_OK);
  CHECK_MSG(turns[0] == 1, "%lld items", (long long)turns[0]);
  fa_wants_free(&forward);
  fa_wants_free(&backward);
  fa_tensors_free(&in);
  fa_case_free(&c);
}

/* The order's own mutex is its first member. */
static const void *watched_mutex;
static int locked;
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m) {
  if (m == watched_mutex) ++locked;
  return __real_pthread_mutex_lock(m);
}
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m) {
  if (m == watched_mutex) CHECK(--locked == 0);
  return __real_pthread_mutex_unlock(m);
}

/* Nobody looks at whose turn it is, or passes it on, without the lock, which is free afterwards. */
static void test_locks(void) {
  fa_ref_order *order = fa_ref_order_new(1);
  REQUIRE(order);
  watched = false;
  watched_mutex = order;
  fa_ref_order_wait(order, 0, 0);
  CHECK(locked == 0);
  fa_ref_order_done(order, 0);
  CHECK(locked == 0);
  fa_ref_order_wait(order, 0, 1);
  CHECK(locked == 0);
  watched_mutex = NULL;
  fa_ref_order_free(order);
}

int main(void) {
  test_strided_row();
  test_slopes();
  test_given_lse();
  test_part();
  test_spans();
  test_gather();
  test_own_keys();
  test_rows_apart();
  test_order();
  test_pages();
  test_pages_of_one();
  test_times();
  test_bias_of_all_rows();
  test_one_row();
  test_turns();
  test_one_item();
  test_locks();
  return check_done();
}
