/* Problems that no text can say, because its reader refuses the word first: a caller of the library can, and is told what is wrong. */
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"

#include <math.h>
#include <string.h>

static void density_of_tree(fa_case *c) {
  c->problem.mask_bits.density = 0.5;
}
static void empty_rows(fa_case *c) {
  c->problem.mask_bits.empty_rows = 2;
}
static void sinks_absent(fa_case *c) {
  c->problem.sinks.grad = true;
}
static void slope(fa_case *c) {
  c->problem.alibi.slopes[0] = NAN;
}
static void parts_dtype(fa_case *c) {
  c->problem.merge.parts_dtype = FA_I32;
}
static void eight_bits(fa_case *c) {
  c->problem.quantized.dtype = FA_F16;
}
static void eight_bits_at_all(fa_case *c) {
  c->problem.quantized.dtype = (fa_dtype)99;
}
static void descale_values(fa_case *c) {
  c->problem.quantized.values = (fa_descale_values)99;
}
static void descale_per(fa_case *c) {
  c->problem.quantized.per = (fa_descale_per)99;
}
#define FOUR_BITS                                                                                            \
  "{\"family\":\"kvcache\",\"seqlen_k\":8,\"kvcache\":{\"len\":[4]},\"quantized\":{\"dtype\":\"e2m1\""
#define LATENT                                                                                               \
  "{\"family\":\"kvcache\",\"seqlen_k\":8,\"mla\":{},\"kvcache\":{\"len\":[4]},\"quantized\":{\"descale\":"  \
  "\"tile\"}}"
static void tiles_without_latent(fa_case *c) {
  c->problem.kvcache.v_in_k = false;
}
static void tiles_of_e5m2(fa_case *c) {
  c->problem.quantized.dtype = FA_E5M2;
}
static void tiles_in_f32(fa_case *c) {
  c->problem.dtype = FA_F32;
}
static void tiles_of_part(fa_case *c) {
  c->problem.head_dim_v = 200;
}
static void tiles_and_new(fa_case *c) {
  c->problem.kvcache.n_new = 1;
}
static void amax_alone(fa_case *c) {
  c->problem.quantized = (fa_quantized){.amax = true};
}
static void nothing_quantized(fa_case *c) {
  c->problem.quantized.present = false;
}
static void o_of_sixteen(fa_case *c) {
  c->problem.quantized.o = FA_F32;
}
static void o_of_nothing(fa_case *c) {
  c->problem.quantized.o = (fa_dtype)99;
}
static void o_scale(fa_case *c) {
  c->problem.quantized.o_scale = 0x1p101;
}
static void o_scale_alone(fa_case *c) {
  c->problem.quantized.o_scale = 2;
}
static void odd_zeros(fa_case *c) {
  c->zero[FA_T_Q].n = 1;
}
static void wide_gap(fa_case *c) {
  c->strides[FA_T_Q].gap[0] = FA_MAX_ELEMENTS, c->strides[FA_T_Q].gap[1] = FA_MAX_ELEMENTS;
  c->strides[FA_T_Q].gap[2] = FA_MAX_ELEMENTS;
}
static void long_lists(fa_case *c) {
  c->problem.topk.k = 1 << 20;
}
static void capture_dtype(fa_case *c) {
  c->problem.captures[0].dtype = FA_F64;
}
static void capture_share(fa_case *c) {
  c->problem.captures[0].share = 0.5;
}
static void capture_sorted(fa_case *c) {
  c->problem.captures[0].sorted = true;
}
static void capture_stride(fa_case *c) {
  c->problem.captures[0].n_strides = 1, c->problem.captures[0].stride[0] = -1;
}
static void poison(fa_case *c) {
  c->poison = (fa_poison)99;
}
static void repeat(fa_case *c) {
  c->repeat = 0;
}
static void tail(fa_case *c) {
  c->strides[FA_T_Q].tail = -1;
}
static void nothing(fa_case *c) {
  (void)c;
}

/* Words that say what is so anyway. */
static void check_taken(void) {
  static const char *const texts[] = {"{\"sinks\":false}", "{\"splits\":0}", "{\"splits\":1}"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(texts[i], &c, &err) == FA_OK, "%s: %s", texts[i], err.text);
    CHECK(!c.problem.sinks.present && c.problem.splits == (int64_t)(i == 2));
    fa_case_free(&c);
  }
}

static const struct {
  const char *text;
  void (*spoil)(fa_case *c);
  const char *says;
} cases[] = {
    {"{\"mask_bits\":{\"tree\":\"star\"}}", density_of_tree,
     "$.mask_bits.density: 0.5, but the bits are a tree's"},
    {"{\"mask_bits\":{\"tree\":\"star\"}}", empty_rows, "$.mask_bits.empty_rows: 2 is not in 0 .. 1"},
    {"{}", sinks_absent, "$.sinks: there are none, but they have a gradient or an LSE"},
    {"{\"alibi\":{\"slopes\":[1]}}", slope, "$.alibi.slopes: slope 0 is nan, must be a finite f32"},
    {"{\"family\":\"merge\",\"merge\":{\"parts\":2}}", parts_dtype,
     "$.merge.parts_dtype: must be f16, bf16 or f32"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", eight_bits,
     "$.quantized.dtype: \"f16\" is none of e4m3, e5m2, i8, e2m1"},
    {LATENT, tiles_without_latent,
     "$.quantized.descale: \"tile\", but only a latent cache (mla) has a descale for each 128 columns"},
    {LATENT, tiles_of_e5m2,
     "$.quantized: tiles are of e4m3 (quantized.dtype), beside queries of 16 bits (quantized.queries)"},
    {LATENT, tiles_in_f32, "$.dtype: f32, but beside tiles of e4m3 the other columns have 16 bits"},
    {LATENT, tiles_of_part, "$.mla.kv_lora_rank: 200 is no multiple of 128, the columns of a tile"},
    {LATENT, tiles_and_new,
     "$.quantized.descale: \"tile\", but new keys bring no descales with them (kvcache.new)"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", eight_bits_at_all,
     "$.quantized.dtype: \"?\" is none of e4m3, e5m2, i8, e2m1"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", descale_values, "$.quantized.values: unknown number 99"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", descale_per, "$.quantized.descale: unknown number 99"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"o\":\"e4m3\"}}", o_of_sixteen,
     "$.quantized.o: \"f32\" is neither io, e4m3 nor e5m2"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"o\":\"e4m3\"}}", o_of_nothing,
     "$.quantized.o: \"?\" is neither io, e4m3 nor e5m2"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"o\":\"e4m3\"}}", o_scale,
     "$.quantized.o_scale: 2.5353e+30 is no number from 2^-100 to 2^100"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", o_scale_alone, "$.quantized.o_scale: 2, but O is not of 8 bits"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"queries\":false,\"o\":\"e4m3\"},\"family\":\"kvcache\",\"seqlen_"
     "k\":8,"
     "\"kvcache\":{\"len\":[4]}}",
     nothing, "$.quantized.o: \"e4m3\", but only beside queries of 8 bits"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"quantize_new\":true},\"family\":\"kvcache\",\"seqlen_k\":8,"
     "\"kvcache\":{"
     "\"len\":[4]}}",
     nothing, "$.quantized.quantize_new: true, but there are no new keys"},
    {"{\"family\":\"kvcache\",\"seqlen_q\":9000,\"seqlen_k\":4,\"kvcache\":{\"len\":[4]},\"topk\":{\"k\":2}}",
     long_lists, "$.topk.k: tensor topk_indices would have more than "},
    {"{\"zero\":{\"q\":[[0,1]]}}", odd_zeros, "$.zero.q: 1 numbers are no pairs"},
    {"{\"batch\":1000000,\"seqlen_q\":1073,\"head_dim\":8}", wide_gap,
     "$.strides.q: tensor q would span more than"},
    {"5", nothing, "5 is not an object"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", nothing_quantized,
     "$.quantized: nothing is, but there are words about it"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"}}", amax_alone,
     "$.quantized: nothing is, but there are words about it"},
    {"{\"family\":\"kvcache\",\"seqlen_k\":4,\"kvcache\":{\"len\":[4]},\"topk\":{\"k\":2},\"quantized\":{"
     "\"amax\":true}}",
     nothing, "$.quantized.amax: not together with topk"},
    {"{\"quantized\":{\"dtype\":\"e2m1\"}}", nothing,
     "$.quantized.dtype: \"e2m1\", but only caches (family kvcache)"},
    {FOUR_BITS ",\"queries\":true}}", nothing,
     "$.quantized.queries: true, but only keys and values can be e2m1"},
    {FOUR_BITS ",\"descale\":\"token\"}}", nothing,
     "$.quantized.descale: \"token\", but beside the scales of its blocks"},
    {FOUR_BITS "},\"head_dim\":24}", nothing, "$.head_dim: 24 is no multiple of 16"},
    {FOUR_BITS "},\"head_dim_v\":40}", nothing, "$.head_dim_v: 40 is no multiple of 16"},
    {"{\"family\":\"kvcache\",\"seqlen_k\":8,\"kvcache\":{\"len\":[4],\"new\":1},\"quantized\":{\"dtype\":"
     "\"e2m1\"}}",
     nothing, "$.kvcache.new: new keys bring no scales of their blocks"},
    {"{\"quantized\":{\"dtype\":\"i8\",\"queries\":true}}", nothing,
     "$.quantized.queries: true, but only keys and values can be i8"},
    {"{\"quantized\":{\"dtype\":\"e4m3\"},\"family\":\"memeff\"}", nothing,
     "$.quantized: family \"memeff\" has none"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"queries\":true},\"dtype\":\"f32\"}", nothing,
     "$.dtype: f32, but beside queries of 8 bits"},
    {"{\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"page\"},\"family\":\"kvcache\",\"seqlen_k\":64,"
     "\"kvcache\":{\"len\":[64]}}",
     nothing, "$.quantized.descale: \"page\", but there are no pages"},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[4]}}}",
     capture_dtype, "$.buffers.x.dtype: f64; must be f32, f16, bf16, i32, i64 or bool"},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[4]}}}",
     capture_share, "$.buffers.x.share: 0.5; a bool buffer has one in [0, 1], and no other has any"},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[4]}}}",
     capture_sorted, "$.buffers.x.sorted: the buffer is f32; i32 and i64 ones can be sorted"},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[4]}}}",
     capture_stride, "$.buffers.x.strides[0]: -1 is not in 0 .."},
    {"{\"family\":\"memeff\",\"bias\":{\"shape\":5}}", nothing,
     "$.bias.shape: 5 is not [\"b\" or 1, \"h\" or 1, \"q\" or 1, \"k\"]"},
    {"{\"family\":\"memeff\",\"bias\":{\"shape\":[\"b\",\"x\",\"q\",\"k\"]}}", nothing,
     "$.bias.shape[1]: \"x\" is not \"h\" or 1"},
    {"{\"sinks\":5}", nothing, "$.sinks: 5 is neither true, false nor an object"},
    {"{\"strides\":{\"q\":{\"expand\":5}}}", nothing,
     "$.strides.q.expand: 5 is not an array of \"b\", \"s\", \"h\""},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":5}}}", nothing,
     "$.buffers.x.shape: 5 is not an array of at most 4 sizes"},
    {"{\"family\":\"flex\",\"score_mod\":\"score + x[0]\",\"buffers\":{\"x\":{\"shape\":[3],\"strides\":5}}}",
     nothing, "$.buffers.x.strides: 5 is not an array of at most 4 strides"},
    {"{\"zero\":{\"q\":5}}", nothing, "$.zero.q: 5 is not [[from, to] ...]"},
    {"{\"zero\":{\"q\":[]}}", nothing, "$.zero.q: an empty array is not [[from, to] ...]"},
    {"{\"family\":\"flex\",\"block_sparse\":{\"q_block\":0,\"kv_block\":16,\"density\":0.5}}", nothing,
     "$.block_sparse.q_block: 0 is not an integer in 1 .."},
    {"{\"batch\":2,\"heads_q\":2,\"alibi\":{\"slopes\":[[1,2],[1]]}}", nothing,
     "$.alibi.slopes[1]: has 1 slopes, the entry before it 2"},
    {"{\"data_seed\":\"12x\"}", nothing, "$.data_seed: \"12x\" is not a decimal"},
    {"{\"family\":\"kvcache\",\"dtype\":\"bf16\",\"seqlen_k\":64,\"kvcache\":{\"len\":[9],\"new\":2},"
     "\"quantized\":{\"dtype\":\"e4m3\",\"descale\":\"token\"}}",
     nothing, "$.quantized.descale: \"token\", but new keys bring no descales with them"},
    {"{\"family\":\"flex\",\"score_mod\":\"score+x[0]\",\"buffers\":{\"x\":{\"shape\":[4],\"dtype\":\"i32\","
     "\"sorted\":true,\"below\":65537}}}",
     nothing, "$.buffers.x.below: 65537; at most 65536 where sorted"},
    {"{}", poison, "$.memory.poison: unknown poison number 99"},
    {"{}", repeat, "$.repeat: 0 is not in 1 .."},
    {"{}", tail, "$.strides.q.tail: -1 is not in 0 .."},
};

int main(void) {
  check_taken();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    fa_case c;
    fa_error err = {""};
    fa_status status = fa_case_from_text(cases[i].text, &c, &err);
    const bool is_read = status == FA_OK;
    if (cases[i].spoil != nothing) {
      REQUIRE(status == FA_OK);
      cases[i].spoil(&c);
      status = fa_case_validate(&c, &err);
    }
    CHECK_MSG(status == FA_ERR_INPUT && strstr(err.text, cases[i].says), "%s: %d %s; expected %s",
              cases[i].text, (int)status, err.text, cases[i].says);
    if (is_read) fa_case_free(&c);
  }
  return check_done();
}
