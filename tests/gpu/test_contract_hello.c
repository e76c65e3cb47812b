/* The hello of a foreign kernel: what it says, what it cannot say, and which problems it covers. */
#include "cases/tensors/table.h"
#include "gpu/contract/features.h"
#include "gpu/contract/hello.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static fa_hello read_good(const char *text) {
  fa_hello h;
  fa_error err = {""};
  CHECK_MSG(fa_hello_read_text(text, "hello", &h, &err) == FA_OK, "%s: %s", text, err.text);
  return h;
}

/* The text must be refused with a message that has all of the words. */
static void refused(const char *text, const char *key, const char *allowed) {
  fa_hello h;
  fa_error err = {""};
  CHECK_MSG(fa_hello_read_text(text, "hello", &h, &err) == FA_ERR_INPUT, "%s is taken", text);
  CHECK_MSG(strstr(err.text, key) && strstr(err.text, allowed), "%s: %s", text, err.text);
}

static void test_bad_keys(void) {
  refused("[]", "hello", "object");
  refused("{\"fa_exec\": 3}", "\"fa_exec\"", "1 or 2");
  refused("{\"limit\": {}}", "\"limit\"", "limits");
  refused("{\"outputs\": [\"lsd\"]}", "\"outputs\": \"lsd\"", "o, lse, p_debug, dq");
  refused("{\"outputs\": \"o\"}", "\"outputs\"", "array");
  refused("{\"features\": [\"colour\"]}", "\"colour\"", "causal, window");
  refused("{\"lse\": {\"base\": 2}}", "\"lse.base\"", "e, 2");
  refused("{\"lse\": {\"bass\": \"2\"}}", "\"lse.bass\"", "base, scaled");
  refused("{\"lse\": {\"scaled\": \"no\"}}", "\"lse.scaled\"", "true or false");
  refused("{\"lse\": {\"layout\": \"odd\"}}", "\"lse.layout\"", "as_call, padded, tokens_heads");
  refused("{\"lse\": {\"dtype\": \"i32\"}}", "\"lse.dtype\"", "f32, f64, f16, bf16, io");
  refused("{\"lse\": {\"empty\": \"none\"}}", "\"lse.empty\"", "as_case, +inf");
  refused("{\"lse\": {\"alibi\": \"row\"}}", "\"lse.alibi\"", "distance, column");
  refused("{\"lse\": 2}", "\"lse\"", "object");
  refused("{\"empty_o\": 0}", "\"empty_o\"", "mean_v");
  refused("{\"limits\": {\"heads\": {}}}", "\"limits.heads\"", "heads_q");
  refused("{\"limits\": {\"batch\": 4}}", "\"limits.batch\"", "object");
  refused("{\"limits\": {\"batch\": {\"most\": 4}}}", "\"limits.batch.most\"", "min, max");
  refused("{\"limits\": {\"batch\": {\"max\": -1}}}", "\"limits.batch.max\"", "at least 0");
  refused("{\"limits\": {\"head_dim\": {\"multiple_of\": 0}}}", "multiple_of", "at least 1");
  refused("{\"limits\": {\"head_dim\": {\"among\": []}}}", "\"limits.head_dim.among\"", "1 ..");
  refused("{\"limits\": {\"head_dim\": {\"among\": [1.5]}}}", "\"limits.head_dim.among\"", "integers");
  refused("{\"transport\": \"pigeon\"}", "\"transport\"", "memory, files");
  refused("{\"supports\": 1}", "\"supports\"", "true or false");
  refused("{\"arithmetic\": \"f32\"}", "\"arithmetic\"", "object");
  refused("{\"arithmetic\": {\"name\": \"abacus\"}}", "\"arithmetic.name\"", "mma-hopper");
  refused("{\"arithmetic\": {\"colour\": 1}}", "\"arithmetic\"", "colour");
  refused("{\"arithmetic\": {\"f16\": 1}}", "\"arithmetic.f16\"", "object");
  refused("{\"fa_exec\": 1, \"name\": \"x\", \"arithmetic\": {\"f16\": {}}}", "\"arithmetic.f16\"",
          "block_n");
}

static void test_declaration(void) {
  const fa_hello h = read_good(
      "{\"outputs\": [\"o\", \"dq\"], \"lse\": {\"base\": \"2\", \"layout\": \"padded\"}, \"empty_o\": "
      "\"nan\","
      " \"arithmetic\": {\"name\": \"mma-ampere\", \"block_n\": 128, \"f32\": {\"name\": \"simt-f32\"}}}");
  const fa_declaration *half = &h.declaration[FA_F16], *full = &h.declaration[FA_F32];
  CHECK(half->contract.outputs == (FA_TENSOR_BIT(FA_T_O) | FA_TENSOR_BIT(FA_T_DQ)));
  CHECK(half->contract.lse_base_2 && !half->contract.lse_unscaled);
  CHECK(half->contract.lse_layout == FA_LSE_PADDED && half->contract.o_of_empty == FA_O_EMPTY_NAN);
  CHECK(half->contract_given ==
        (FA_CONTRACT_OUTPUTS | FA_CONTRACT_LSE_BASE | FA_CONTRACT_LSE_LAYOUT | FA_CONTRACT_O_OF_EMPTY));
  CHECK(half->arithmetic_given && strcmp(half->arithmetic.name, "mma-ampere") == 0);
  CHECK(half->arithmetic.block_n == 128);
  CHECK(full->arithmetic_given && strcmp(full->arithmetic.name, "simt-f32") == 0);
}

static void test_lse_as_elements(void) {
  const fa_hello h = read_good("{\"lse\": {\"dtype\": \"io\"}}"),
                 wide = read_good("{\"lse\": {\"dtype\": \"f64\"}}");
  for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
    CHECK(h.declaration[t].contract.lse_dtype == (fa_dtype)t);
    CHECK(h.declaration[t].contract_given & FA_CONTRACT_LSE_DTYPE);
    CHECK(wide.declaration[t].contract.lse_dtype == FA_F64);
  }
}

static void test_adoption(void) {
  fa_hello h = read_good("{\"lse\": {\"base\": \"2\"}}");
  fa_declaration found = h.declaration[FA_F16], out;
  CHECK(!found.arithmetic_given && strcmp(found.arithmetic.name, "recorded") == 0);
  found.contract_given = FA_CONTRACT_LSE_BASE | FA_CONTRACT_LSE_LAYOUT;
  found.contract.lse_base_2 = false, found.contract.lse_layout = FA_LSE_PADDED;
  found.arithmetic_given = true;
  REQUIRE(fa_arithmetic_named("simt-f32", FA_F16, &found.arithmetic));
  fa_hello_adopt(&h, FA_F16, &found);
  fa_problem p;
  fa_problem_init(&p);
  fa_hello_declare(&h, &p, &out);
  CHECK(out.contract.lse_base_2); /* what it has said itself stays */
  CHECK(out.contract.lse_layout == FA_LSE_PADDED && strcmp(out.arithmetic.name, "simt-f32") == 0);
  CHECK(out.contract_given == found.contract_given && out.arithmetic_given);
  CHECK(!h.declaration[FA_BF16].arithmetic_given);
  fa_problem_free(&p);
}

static void test_version_1(void) {
  const fa_hello h = read_good("{\"fa_exec\": 1, \"name\": \"x\", \"limits\": 1, \"novelty\": 2}");
  CHECK(h.version == 1 && h.files);
  CHECK(h.declaration[0].contract_given == ~0u && h.declaration[0].arithmetic_given);
  for (int i = 0; fa_feature_at(i); ++i)
    CHECK((h.features >> i & 1) == (fa_feature_at(i)->age < FA_FEATURE_LATER));
  const fa_hello listed = read_good("{\"fa_exec\": 1, \"name\": \"x\", \"features\": [\"score_mod\"]}");
  for (int i = 0; fa_feature_at(i); ++i)
    CHECK((listed.features >> i & 1) ==
          (fa_feature_at(i)->age == FA_FEATURE_IMPLIED || strcmp(fa_feature_name(i), "score_mod") == 0));
}

/* Words that came after version 2 are in no hello that does not list them. */
static void test_words_since(void) {
  const fa_hello silent = read_good("{\"fa_exec\": 2, \"name\": \"x\"}");
  const fa_hello listed = read_good("{\"fa_exec\": 2, \"name\": \"x\", \"features\": [\"mods_operators\"]}");
  for (int i = 0; fa_feature_at(i); ++i) {
    CHECK((silent.features >> i & 1) == (fa_feature_at(i)->age != FA_FEATURE_LISTED));
    CHECK((listed.features >> i & 1) == (strcmp(fa_feature_name(i), "mods_operators") == 0));
  }
}

/* The problem must be refused for exactly this reason. */
static void lacks(const char *hello, const fa_problem *p, const char *reason) {
  const fa_hello h = read_good(hello);
  char why[256] = "";
  const unsigned passes = fa_hello_passes(&h, p, why, sizeof why);
  CHECK_MSG(strcmp(why, reason) == 0 && (passes == FA_PASS_NONE) == (reason[0] != 0), "%s: passes %u, %s",
            hello, passes, why);
}

static void test_passes(void) {
  fa_problem p;
  fa_problem_init(&p);
  p.batch = 3, p.heads_q = 6, p.heads_kv = 2, p.seqlen_q = 5, p.seqlen_k = 7, p.head_dim = p.head_dim_v = 40;
  lacks("{}", &p, "");
  lacks("{\"families\": [\"flex\"]}", &p, "it has no flash");
  lacks("{\"dtypes\": [\"f32\"]}", &p, "it has no f16");
  lacks("{\"features\": [\"causal\"]}", &p, "it has no gqa");
  lacks("{\"features\": [\"gqa\"]}", &p, "");
  lacks("{\"limits\": {\"head_dim\": {\"max\": 32}}}", &p, "head_dim 40 is more than 32");
  lacks("{\"limits\": {\"head_dim\": {\"min\": 64}}}", &p, "head_dim 40 is less than 64");
  lacks("{\"limits\": {\"head_dim\": {\"multiple_of\": 16}}}", &p, "head_dim 40 is not a multiple of 16");
  lacks("{\"limits\": {\"head_dim\": {\"among\": [64, 128]}}}", &p, "head_dim 40 is none of 64, 128");
  lacks("{\"limits\": {\"head_dim\": {\"among\": [40]}}}", &p, "");
  lacks("{\"limits\": {\"group\": {\"max\": 2}}}", &p, "group 3 is more than 2");
  lacks("{\"limits\": {\"page_size\": {\"min\": 16}}}", &p, "");
  p.mask.type = FA_MASK_CAUSAL;
  lacks("{\"features\": [\"gqa\", \"causal\"]}", &p, "it has no bottom_right");
  lacks("{\"fa_exec\": 1, \"name\": \"x\", \"features\": [\"gqa\", \"causal\"]}", &p, "");
  p.seqlen_k = 5;
  lacks("{\"features\": [\"gqa\", \"causal\"]}", &p, "");
  fa_problem_set_family(&p, FA_FLEX);
  p.dropout.p = 0.5;
  lacks("{}", &p, "");
  lacks("{\"fa_exec\": 1, \"name\": \"x\"}", &p, "it has no dropout_flex");
  lacks(
      "{\"fa_exec\": 1, \"name\": \"x\", \"features\": [\"gqa\", \"causal\", \"dropout\", \"dropout_flex\"]}",
      &p, "");
  p.dropout.p = 0;
  p.mask_mod = strdup("q_idx >= kv_idx && (h < 2)");
  lacks("{}", &p, "");
  free(p.mask_mod);
  p.mask_mod = strdup("(q_idx >= kv_idx) & (h < 2)");
  lacks("{}", &p, "it has no mods_operators");
  lacks("{\"features\": [\"gqa\", \"causal\", \"mask_mod\", \"mods_operators\"]}", &p, "");
  free(p.mask_mod);
  p.mask_mod = strdup("where(h < 2, ~(q_idx < kv_idx), true)");
  lacks("{\"features\": [\"gqa\", \"causal\", \"mask_mod\"]}", &p, "it has no mods_operators");
  fa_problem_free(&p);
}

/* What only gradients need costs the backward, not the case. */
static void test_forward_alone(void) {
  fa_problem p;
  fa_problem_init(&p);
  p.backward = p.grad_lse = true;
  const fa_hello h = read_good("{\"features\": [\"gqa\"]}");
  char why[256] = "";
  CHECK(fa_hello_passes(&h, &p, why, sizeof why) == FA_PASS_FORWARD);
  CHECK_MSG(strcmp(why, "it has no dlse") == 0, "%s", why);
  p.grad_lse = false;
  CHECK(fa_hello_passes(&h, &p, why, sizeof why) == (FA_PASS_FORWARD | FA_PASS_BACKWARD));
  p.mask.type = FA_MASK_CAUSAL, p.grad_lse = true;
  CHECK(fa_hello_passes(&h, &p, why, sizeof why) == FA_PASS_NONE);
  CHECK_MSG(strcmp(why, "it has no causal") == 0, "%s", why);
  fa_problem_free(&p);
}

int main(void) {
  test_forward_alone();
  test_bad_keys();
  test_declaration();
  test_lse_as_elements();
  test_adoption();
  test_version_1();
  test_words_since();
  test_passes();
  return check_done();
}
