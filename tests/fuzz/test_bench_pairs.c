/* The amount of work that bench divides by: pairs by position, by mask_mod and by block lists; and bytes of caches. */
#include "cases/codec/json.h"
#include "cases/data/build.h"
#include "fuzz/bench/pairs.h"
#include "fuzz/bench/work.h"
#include "tests/support/check.h"

#include <math.h>
#include <stdio.h>

static bool build(const char *json, fa_case *c, fa_tensors *t) {
  fa_error err = {""};
  const bool built = fa_case_from_text(json, c, &err) == FA_OK && fa_case_build(c, t, &err) == FA_OK;
  CHECK_MSG(built, "%s: %s", json, err.text);
  return built;
}

/* Of one query of one head over 100 keys of 64 columns: its own, O's and an LSE are 260 bytes. */
static void expect_bytes(const char *quantized, double of_key) {
  char json[256];
  fa_case c;
  fa_tensors t;
  snprintf(json, sizeof json,
           "{\"family\": \"kvcache\", \"seqlen_q\": 1, \"seqlen_k\": 128, \"head_dim\": 64, \"kvcache\": "
           "{\"len\": [100]}%s}",
           quantized);
  if (!build(json, &c, &t)) return;
  const double got = fa_bench_bytes(&c.problem, &t, false), want = 260 + 100 * of_key;
  CHECK_MSG(got == want, "%s: %.1f bytes, not %.1f", json, got, want);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

static void expect(const char *json, double want, double tolerance) {
  fa_case c;
  fa_tensors t;
  if (!build(json, &c, &t)) return;
  const double got = fa_bench_pairs(&c.problem, &t);
  CHECK_MSG(fabs(got - want) <= tolerance * want, "%s: %.1f, not %.1f", json, got, want);
  fa_tensors_free(&t);
  fa_case_free(&c);
}

int main(void) {
  expect("{\"seqlen_q\": 10, \"seqlen_k\": 20, \"heads_q\": 3, \"batch\": 2}", 1200, 0);
  expect("{\"seqlen_q\": 10, \"heads_q\": 2, \"mask\": {\"type\": \"causal\"}}", 110, 0);
  expect("{\"family\": \"flex\", \"seqlen_q\": 10, \"heads_q\": 2, \"score_mod\": \"-score\"}", 200, 0);
  expect(
      "{\"family\": \"flex\", \"seqlen_q\": 10, \"heads_q\": 2, \"mask_mod\": \"q_idx >= kv_idx || h == 1\"}",
      155, 0);
  expect("{\"family\": \"flex\", \"seqlen_q\": 128, \"seqlen_k\": 192, \"heads_q\": 2, \"mask_mod\": "
         "\"kv_idx % 2 == 0\", "
         "\"block_sparse\": {\"q_block\": 64, \"kv_block\": 64, \"kv_num_blocks\": [[[1, 0]]], "
         "\"kv_indices\": [[[[2, 9, 9], [9, 9, 9]]]], \"full_kv_num_blocks\": [[[0, 2]]], "
         "\"full_kv_indices\": [[[[9, 9, 9], [0, 1, 9]]]]}}",
         2 * (64 * 32 + 64 * 128), 0);
  /* more pairs than are sampled */
  expect("{\"family\": \"flex\", \"seqlen_q\": 3000, \"heads_q\": 2, \"head_dim\": 8, \"mask_mod\": \"q_idx "
         ">= kv_idx\"}",
         3000.0 * 3001, 1e-3);
  expect_bytes("", 256);
  expect_bytes(", \"quantized\": {\"dtype\": \"e4m3\", \"queries\": false}", 128);
  expect_bytes(", \"quantized\": {\"dtype\": \"e2m1\"}", 72);
  return check_done();
}
