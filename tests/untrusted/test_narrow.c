/* What is left of a claim beside pinned arithmetic; the secret and what is drawn from it; a hello as canonical text. */
#include "cases/tensors/table.h"
#include "fuzz/untrusted/narrow.h"
#include "fuzz/untrusted/rules.h"
#include "fuzz/untrusted/secret.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static fa_arithmetic named(const char *name, fa_dtype dtype) {
  fa_arithmetic a;
  CHECK(fa_arithmetic_named(name, dtype, &a));
  return a;
}

/* Every constant that makes bounds wider when it is larger. */
static void check_not_wider(const fa_profile *a, const fa_profile *b) {
  CHECK(a->u_p <= b->u_p && a->u_ds <= b->u_ds && a->u_p_in_ds <= b->u_p_in_ds);
  CHECK(a->u_dropout <= b->u_dropout && a->floor_p <= b->floor_p && a->floor_ds <= b->floor_ds);
  CHECK(a->max_p >= b->max_p && a->u_operand <= b->u_operand && a->u_scores <= b->u_scores);
  CHECK(a->u_dp <= b->u_dp && a->u_delta <= b->u_delta && a->u_partials <= b->u_partials);
  CHECK(a->truncated_p <= b->truncated_p && a->truncated_ds <= b->truncated_ds);
  CHECK(a->operands_cut <= b->operands_cut && a->max_rounded <= b->max_rounded &&
        a->exp_scaled <= b->exp_scaled);
  CHECK(a->eps_exp <= b->eps_exp && a->eps_log <= b->eps_log && a->eps_tanh <= b->eps_tanh);
  CHECK(a->block_n >= b->block_n && a->max_splits <= b->max_splits && a->floor_dq <= b->floor_dq);
  CHECK(a->dq_atomic <= b->dq_atomic && a->dkv_atomic <= b->dkv_atomic && a->dbias_atomic <= b->dbias_atomic);
  for (int i = 0; i < FA_N_PRODUCTS; ++i)
    CHECK(a->accumulator[i] <= b->accumulator[i] && a->operand[i] <= b->operand[i]);
}

/* Whatever is claimed beside whatever is pinned. */
static void test_never_wider(void) {
  char ignored[400];
  for (int pinned = 0; fa_arithmetic_name(pinned); ++pinned)
    for (int claimed = 0; fa_arithmetic_name(claimed); ++claimed)
      for (int t = 0; t < FA_HELLO_DTYPES; ++t) {
        const fa_arithmetic pin = named(fa_arithmetic_name(pinned), (fa_dtype)t),
                            claim = named(fa_arithmetic_name(claimed), (fa_dtype)t),
                            left = fa_arithmetic_narrow(&pin, &claim, (fa_dtype)t, ignored, sizeof ignored);
        const fa_profile a = fa_arithmetic_profile(&left, (fa_dtype)t),
                         b = fa_arithmetic_profile(&pin, (fa_dtype)t);
        check_not_wider(&a, &b);
      }
}

static void test_claims(void) {
  char ignored[400];
  const fa_arithmetic pin = named("flash", FA_BF16);
  fa_arithmetic claim = named("numpy-f32", FA_BF16);
  fa_arithmetic left = fa_arithmetic_narrow(&pin, &claim, FA_BF16, ignored, sizeof ignored);
  CHECK(strcmp(ignored, "") == 0 && left.p == FA_FORMAT_F32 && left.max_splits == 1 && left.p_kept);
  claim = named("recorded", FA_BF16);
  claim.p = FA_FORMAT_E4M3;
  claim.p_rounding = FA_ROUND_TRUNCATE;
  claim.dq_atomic = true;
  claim.max_splits = 4096;
  claim.accumulator[FA_PRODUCT_PV] = FA_ACCUMULATOR_F16;
  left = fa_arithmetic_narrow(&pin, &claim, FA_BF16, ignored, sizeof ignored);
  CHECK(left.p == FA_FORMAT_IO && left.p_rounding == FA_ROUND_NEAREST && !left.dq_atomic);
  CHECK(left.max_splits == pin.max_splits && left.accumulator[FA_PRODUCT_PV] == FA_ACCUMULATOR_MMA);
  CHECK(strstr(ignored, "p e4m3") && strstr(ignored, "max_splits 4096") && strstr(ignored, "dq_atomic"));
  CHECK(strstr(ignored, "accumulator_pv f16") && strstr(ignored, "p_rounding truncate"));
}

static void test_what_fits(void) {
  fa_arithmetic a = named("flash", FA_F16);
  fa_problem p;
  fa_problem_init(&p);
  a.block_n = 100000;
  p.seqlen_k = 1000;
  fa_arithmetic_fit(&a, &p);
  CHECK(a.block_n == 256 && a.max_splits == 15);
  p.seqlen_k = 10;
  fa_arithmetic_fit(&a, &p);
  CHECK(a.max_splits == 1);
  fa_problem_free(&p);
  CHECK(fa_arithmetic_may_be_pinned("triton") && !fa_arithmetic_may_be_pinned("recorded-memeff"));
  CHECK(!fa_arithmetic_may_be_pinned("exact"));
}

static void test_secret(void) {
  static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
  fa_secret a, b;
  char hex[65];
  CHECK(fa_secret_draw(&a, NULL) == FA_OK && fa_secret_draw(&b, NULL) == FA_OK && strcmp(a.hex, b.hex) != 0);
  CHECK(strlen(a.hex) == FA_SECRET_DIGITS && fa_secret_read(&b, a.hex, NULL) == FA_OK &&
        strcmp(a.hex, b.hex) == 0);
  CHECK(fa_secret_number(&a, "data", 1, 2) == fa_secret_number(&b, "data", 1, 2));
  CHECK(fa_secret_number(&a, "data", 1, 2) != fa_secret_number(&a, "data", 2, 1));
  CHECK(fa_secret_read(&b, "12", NULL) == FA_ERR_INPUT && fa_secret_read(&b, "g", NULL) == FA_ERR_INPUT);
  CHECK(fa_secret_read(&a, zeros, NULL) == FA_OK);
  fa_secret_commit(&a, "a", "b", hex); /* printf '%064d\na\nb\n' 0 | sha256sum */
  CHECK(strcmp(hex, "e21f89889f41fefca3f99b3fb5969543c1ef8b2648100b1bc7d822c87cebb822") == 0);
}

static void test_contract(void) {
  static const char text[] =
      "{\"fa_exec\":2,\"limits\":{\"head_dim\":{\"max\":40}},\"name\":\"a\",\"passes\":[\"forward\"]}";
  fa_rules r;
  fa_problem p;
  char why[200];
  fa_problem_init(&p);
  CHECK(fa_rules_init(&r, FA_ALL_LAYERS, text, NULL, NULL) == FA_OK);
  CHECK(fa_rules_promised(&r, &p, why, sizeof why) == 0); /* head_dim 64 */
  p.head_dim = p.head_dim_v = 40;
  CHECK(fa_rules_promised(&r, &p, why, sizeof why) == FA_PASS_FORWARD);
  CHECK(fa_rules_init(&r, FA_ALL_LAYERS, "", NULL, NULL) == FA_ERR_INPUT);
  CHECK(fa_rules_init(&r, FA_ALL_LAYERS, text, "recorded", NULL) == FA_ERR_INPUT);
  fa_problem_free(&p);
}

/* Layers of the judge are in force only with rules, those that are always there without them too. */
static void test_layers(void) {
  fa_rules r = {.layers = FA_ALL_LAYERS & ~(1u << FA_LAYER_GUARDS)};
  CHECK(fa_rules_have(NULL, FA_LAYER_BOUNDS) && !fa_rules_have(NULL, FA_LAYER_REPLAY));
  CHECK(fa_rules_have(&r, FA_LAYER_REPLAY) && !fa_rules_have(&r, FA_LAYER_GUARDS));
}

int main(void) {
  test_never_wider();
  test_claims();
  test_what_fits();
  test_secret();
  test_contract();
  test_layers();
  return check_done();
}
