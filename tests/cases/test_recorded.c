/* The cases of runs recorded from the original kernels, verbatim from the files: what other programs have
 * written must stay readable. */
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"

#include <string.h>

static const char *const recorded[] = {
    "{\"family\": \"flash\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 128, "
    "\"head_dim\": 64, \"heads_kv\": 2, \"seqlen_k\": 128, \"head_dim_v\": 64, \"name\": \"flash_dense\", "
    "\"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"bf16\", \"batch\": 1, \"heads_q\": 1, \"seqlen_q\": 129, "
    "\"head_dim\": 256, \"seqlen_k\": 130, \"mask\": {\"type\": \"causal\"}, \"heads_kv\": 1, "
    "\"head_dim_v\": 256, \"name\": \"flash_hdim256\", \"note\": \"torch 2.11.0+cu130\", \"layout\": "
    "\"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 257, "
    "\"head_dim\": 96, \"mask\": {\"type\": \"window\", \"left\": 17, \"right\": 5}, \"heads_kv\": 2, "
    "\"seqlen_k\": 257, \"head_dim_v\": 96, \"name\": \"flash_window\", \"note\": \"torch 2.11.0+cu130\", "
    "\"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"bf16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 203, "
    "\"head_dim\": 128, \"heads_kv\": 1, \"seqlen_k\": 113, \"mask\": {\"type\": \"causal\"}, "
    "\"head_dim_v\": 128, \"name\": \"flash_causal_tall\", \"note\": \"torch 2.11.0+cu130\", \"layout\": "
    "\"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"f16\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 160, "
    "\"head_dim\": 64, \"seqlen_k\": 192, \"dropout\": {\"p\": 0.17, \"seed\": \"1234\", \"offset\": \"0\"}, "
    "\"heads_kv\": 2, \"head_dim_v\": 64, \"name\": \"flash_dropout\", \"note\": \"torch 2.11.0+cu130\", "
    "\"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 70, "
    "\"head_dim\": 40, \"seqlen_k\": 90, \"dropout\": {\"p\": 0.1, \"seed\": \"7\", \"offset\": \"4\"}, "
    "\"heads_kv\": 2, \"head_dim_v\": 40, \"name\": \"flash_hdim40_dropout\", \"note\": \"torch "
    "2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"bf16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 200, "
    "\"head_dim\": 128, \"mask\": {\"type\": \"causal\"}, \"dropout\": {\"p\": 0.5, \"seed\": "
    "\"81985529216486895\", \"offset\": \"8\"}, \"heads_kv\": 2, \"seqlen_k\": 200, \"head_dim_v\": 128, "
    "\"name\": \"flash_dropout_causal_bigseed\", \"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 4, \"seqlen_q\": 113, "
    "\"head_dim\": 64, \"heads_kv\": 2, \"seqlen_k\": 203, \"mask\": {\"type\": \"causal\"}, \"head_dim_v\": "
    "64, \"name\": \"flash_causal_gqa_odd\", \"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flash\", \"dtype\": \"bf16\", \"batch\": 5, \"heads_q\": 2, \"seqlen_q\": 128, "
    "\"head_dim\": 64, \"cu_seqlens_q\": [0, 1, 65, 130, 130, 259], \"cu_seqlens_k\": [0, 33, 97, 98, 140, "
    "270], \"mask\": {\"type\": \"causal\"}, \"heads_kv\": 2, \"seqlen_k\": 128, \"head_dim_v\": 64, "
    "\"name\": \"flash_varlen_causal\", \"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flex\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 4, \"seqlen_q\": 256, "
    "\"head_dim\": 64, \"score_mod\": \"score + slopes[h] * (kv_idx - q_idx)\", \"buffers\": {\"slopes\": "
    "{\"shape\": [4]}}, \"heads_kv\": 4, \"seqlen_k\": 256, \"head_dim_v\": 64, \"name\": "
    "\"flex_alibi_like\", \"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flex\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 256, "
    "\"head_dim\": 64, \"score_mod\": \"20 * tanh(score / 20)\", \"heads_kv\": 2, \"seqlen_k\": 256, "
    "\"head_dim_v\": 64, \"name\": \"flex_softcap\", \"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"flex\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 256, "
    "\"head_dim\": 64, \"mask_mod\": \"kv_idx < 37 || q_idx >= kv_idx\", \"heads_kv\": 2, \"seqlen_k\": 256, "
    "\"head_dim_v\": 64, \"name\": \"flex_prefix_mask\", \"note\": \"torch 2.11.0+cu130\", \"layout\": "
    "\"bshd\"}",
    "{\"family\": \"flex\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 256, "
    "\"head_dim\": 64, \"heads_kv\": 2, \"seqlen_k\": 256, \"head_dim_v\": 64, \"name\": \"flex_noop\", "
    "\"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 150, "
    "\"head_dim\": 64, \"mask\": {\"type\": \"window\", \"align\": \"top_left\", \"left\": 30, \"right\": "
    "0}, \"heads_kv\": 2, \"seqlen_k\": 150, \"head_dim_v\": 64, \"name\": \"memeff_f16_window_topleft\", "
    "\"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f32\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 70, "
    "\"head_dim\": 24, \"seqlen_k\": 100, \"head_dim_v\": 56, \"mask\": {\"type\": \"causal\", \"align\": "
    "\"bottom_right\"}, \"heads_kv\": 2, \"name\": \"memeff_f32_k_ne_kv\", \"note\": \"torch 2.11.0+cu130\", "
    "\"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 128, "
    "\"head_dim\": 64, \"seqlen_k\": 192, \"mask\": {\"type\": \"causal\", \"align\": \"top_left\"}, "
    "\"heads_kv\": 2, \"head_dim_v\": 64, \"name\": \"memeff_f16_topleft\", \"note\": \"torch "
    "2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f16\", \"batch\": 1, \"heads_q\": 2, \"seqlen_q\": 72, "
    "\"head_dim\": 64, \"seqlen_k\": 80, \"bias\": {\"shape\": [\"b\", \"h\", \"q\", \"k\"], \"grad\": "
    "true}, \"dropout\": {\"p\": 0.2, \"seed\": \"99\", \"offset\": \"12\"}, \"heads_kv\": 2, "
    "\"head_dim_v\": 64, \"name\": \"memeff_f16_dropout_bias\", \"note\": \"torch 2.11.0+cu130\", "
    "\"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f32\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 65, "
    "\"head_dim\": 32, \"seqlen_k\": 97, \"heads_kv\": 2, \"head_dim_v\": 32, \"name\": \"memeff_f32\", "
    "\"note\": \"torch 2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f16\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 64, "
    "\"head_dim\": 32, \"seqlen_k\": 96, \"bias\": {\"shape\": [\"b\", \"h\", \"q\", \"k\"], \"grad\": "
    "true}, \"heads_kv\": 2, \"head_dim_v\": 32, \"name\": \"memeff_f16_bias\", \"note\": \"torch "
    "2.11.0+cu130\", \"layout\": \"bshd\"}",
    "{\"family\": \"memeff\", \"dtype\": \"f32\", \"batch\": 2, \"heads_q\": 2, \"seqlen_q\": 64, "
    "\"head_dim\": 32, \"seqlen_k\": 96, \"dropout\": {\"p\": 0.3, \"seed\": \"4321\", \"offset\": \"0\"}, "
    "\"heads_kv\": 2, \"head_dim_v\": 32, \"name\": \"memeff_f32_dropout\", \"note\": \"torch "
    "2.11.0+cu130\", \"layout\": \"bshd\"}",
};

/* The recorded case of this name. */
static void get(const char *name, fa_case *c) {
  char key[80];
  snprintf(key, sizeof key, "\"name\": \"%s\"", name);
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; ++i)
    if (strstr(recorded[i], key)) {
      REQUIRE(fa_case_from_text(recorded[i], c, NULL) == FA_OK);
      return;
    }
  REQUIRE(!"recorded");
}

static void test_all(void) {
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; ++i) {
    fa_case c, back;
    fa_error err = {""};
    fa_status status = fa_case_from_text(recorded[i], &c, &err);
    CHECK_MSG(status == FA_OK, "%s: %s", recorded[i], err.text);
    if (status != FA_OK) continue;
    char *line = fa_case_to_line(&c);
    CHECK(fa_case_from_text(line, &back, &err) == FA_OK);
    CHECK_MSG(fa_case_equal(&c, &back), "%s", line);
    fa_case_free(&back);
    free(line);
    fa_case_free(&c);
  }
}

static void test_contents(void) {
  fa_case c;
  get("flash_varlen_causal", &c); /* its lengths say 128, but its longest sequences are 129 and 130 */
  CHECK(c.problem.batch == 5 && c.problem.seqlen_q == 129 && c.problem.seqlen_k == 130);
  CHECK(fa_problem_total_q(&c.problem) == 259 && fa_problem_total_k(&c.problem) == 270);
  CHECK(c.problem.mask.type == FA_MASK_CAUSAL && c.problem.dtype == FA_BF16);
  fa_case_free(&c);
  get("flash_dropout_causal_bigseed", &c);
  CHECK(c.problem.dropout.seed == 81985529216486895u && c.problem.dropout.offset == 8);
  CHECK(c.problem.dropout.p == 0.5 && c.problem.backward && c.problem.empty_lse == FA_EMPTY_POS_INF);
  fa_case_free(&c);
  get("flex_alibi_like", &c);
  CHECK(c.problem.n_captures == 1 && strcmp(c.problem.captures[0].name, "slopes") == 0);
  CHECK(c.problem.captures[0].rank == 1 && c.problem.captures[0].shape[0] == 4 && c.problem.captures[0].grad);
  CHECK(strcmp(c.problem.score_mod, "score + slopes[h] * (kv_idx - q_idx)") == 0);
  CHECK(c.problem.empty_lse == FA_EMPTY_NEG_INF && !c.problem.mask_mod);
  fa_case_free(&c);
  get("memeff_f16_window_topleft", &c);
  CHECK(c.problem.mask.align == FA_ALIGN_TOP_LEFT && c.problem.mask.left == 30 && c.problem.mask.right == 0);
  fa_case_free(&c);
  get("memeff_f16_bias", &c);
  CHECK(c.problem.bias.present && c.problem.bias.grad && c.problem.bias.per_batch && c.problem.bias.per_head);
  fa_case_free(&c);
  get("memeff_f32_k_ne_kv", &c);
  CHECK(c.problem.head_dim == 24 && c.problem.head_dim_v == 56 && c.problem.scale == fa_default_scale(24));
  fa_case_free(&c);
}

int main(void) {
  test_all();
  test_contents();
  return check_done();
}
