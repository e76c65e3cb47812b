/* Which cases a law does not apply to, and the reason that it gives; beside each its neighbour, to which it applies. */
#include "cases/codec/json.h"
#include "fuzz/judging/run_checks.h"
#include "fuzz/laws/parts.h"
#include "fuzz/one/run_case.h"
#include "tests/support/check.h"

#include <string.h>

#define VARLEN "\"cu_seqlens_q\":[0,5,12],\"cu_seqlens_k\":[0,9,20]"
#define CACHE "{\"family\":\"kvcache\",\"seqlen_q\":2,\"seqlen_k\":32,"
#define MEMEFF "{\"family\":\"memeff\",\"seqlen_q\":6,\"batch\":2,\"heads_q\":2,"
#define CAUSAL "\"mask\":{\"type\":\"causal\"}"
#define DROPOUT "\"dropout\":{\"p\":0.2,\"seed\":\"3\"}"
#define PACKED_BIAS "{\"family\":\"memeff\",\"heads_q\":2," VARLEN ",\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}"
#define BLOCKS                                                                                               \
  "{\"family\":\"flex\",\"seqlen_q\":40,\"seqlen_k\":40,\"batch\":2,\"heads_q\":2,\"block_sparse\":{"        \
  "\"q_block\":16,\"kv_block\":16,\"density\":0.9,\"seed\":\"1\"}"

static const struct {
  fa_law law;
  const char *json, *reason; /* NULL: it applies */
} cases[] = {
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6,\"alibi\":{}}", "position"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6," DROPOUT "}", "dropout goes by position"},
    {FA_LAW_KEY_PERMUTATION, CACHE "\"kvcache\":{\"len\":[9]}}", "a cache's keys have positions"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6,\"seqused_k\":[4]}", "not all keys are used"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6,\"leftpad_k\":[2]}", "not all keys are used"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6,\"strides\":{\"k\":{\"expand\":[\"s\"]}}}",
     "keys share memory"},
    {FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6,\"strides\":{\"v\":{\"expand\":[\"s\"]}}}",
     "keys share memory"},
    {FA_LAW_KEY_PERMUTATION, "{" VARLEN "}", NULL},
    {FA_LAW_HEAD_PERMUTATION, "{\"seqlen_q\":6,\"heads_q\":4,\"heads_kv\":2," DROPOUT "}",
     "dropout goes by head"},
    {FA_LAW_HEAD_PERMUTATION, BLOCKS "}", "block lists go by head"},
    {FA_LAW_BATCH_ALONE, "{\"seqlen_q\":6}", "there is one entry"},
    {FA_LAW_BATCH_ALONE, "{" VARLEN "}", "see varlen-separate"},
    {FA_LAW_BATCH_ALONE, BLOCKS "}", "block lists go by entry"},
    {FA_LAW_BATCH_ALONE, MEMEFF DROPOUT "}", "dropout goes by entry"},
    {FA_LAW_BATCH_ALONE, "{\"seqlen_q\":6,\"batch\":2," DROPOUT "}", NULL},
    {FA_LAW_VARLEN_SEPARATE, "{\"seqlen_q\":6}", "not of variable length"},
    {FA_LAW_VARLEN_SEPARATE, "{" VARLEN "," DROPOUT "}", NULL},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":6}", "not causal"},
    {FA_LAW_CAUSAL_PREFIX, "{" VARLEN "," CAUSAL "}", "plain rows and keys only"},
    {FA_LAW_CAUSAL_PREFIX, CACHE CAUSAL ",\"kvcache\":{\"len\":[9]}}", "plain rows and keys only"},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":6,\"seqused_k\":[4]," CAUSAL "}", "not all keys are used"},
    {FA_LAW_CAUSAL_PREFIX, MEMEFF CAUSAL "," DROPOUT "}", "dropout goes by the lengths"},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":1," CAUSAL "}", "there is one row"},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":40,\"seqlen_k\":4," CAUSAL "}", "the first rows see no key"},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":2," CAUSAL "}", NULL},
    {FA_LAW_MERGE_RANGES, "{" VARLEN "}", "plain keys only"},
    {FA_LAW_MERGE_RANGES, CACHE "\"kvcache\":{\"len\":[9]}}", "plain keys only"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"seqused_k\":[4]}", "their position"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"leftpad_k\":[2]}", "their position"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"alibi\":{}}", "their position"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6," DROPOUT "}", "dropout goes by position"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"seqlen_k\":1}", "there is one key"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"seqlen_k\":2}", NULL},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"mask\":{\"type\":\"window\",\"left\":2,\"right\":1}}",
     "cannot be cut at a key"},
    {FA_LAW_SPLIT_COUNT, "{\"seqlen_q\":6," DROPOUT "}", "splits have no dropout"},
    {FA_LAW_WINDOW_OPEN, "{\"seqlen_q\":6,\"mask\":{\"type\":\"window\",\"left\":2,\"right\":1}}",
     "it has a window"},
    {FA_LAW_WINDOW_OPEN, CACHE "\"head_dim\":16,\"kvcache\":{\"len\":[9],\"rotary\":{\"dim\":16}}}",
     "moves the rotation"},
    {FA_LAW_BIAS_MASK, "{\"seqlen_q\":6," CAUSAL "}", "no bias"},
    {FA_LAW_BIAS_MASK, MEMEFF "\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}", "no mask"},
    {FA_LAW_BIAS_MASK, MEMEFF CAUSAL ",\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}", NULL},
    {FA_LAW_BIAS_MASK, MEMEFF CAUSAL ",\"seqused_k\":[4,5],\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     "hidden in other ways too"},
    {FA_LAW_SINK_NONE, "{\"seqlen_q\":6}", "it has no sinks"},
    {FA_LAW_SCALE_POWER, CACHE "\"head_dim\":16,\"kvcache\":{\"len\":[9],\"rotary\":{\"dim\":16}}}",
     "rotated queries"},
    {FA_LAW_SCALE_POWER, "{\"seqlen_q\":6,\"strides\":{\"q\":{\"expand\":[\"s\"]}}}", "queries share memory"},
    {FA_LAW_SCALE_POWER, "{\"seqlen_q\":6,\"scale\":1e-20}", "as small as it may be"},
    {FA_LAW_SCALE_POWER, "{\"seqlen_q\":6,\"scale\":0}", NULL},
    {FA_LAW_VALUE_POWER, "{\"seqlen_q\":6,\"strides\":{\"v\":{\"expand\":[\"s\"]}}}", "values share memory"},
    {FA_LAW_VALUE_POWER, "{\"seqlen_q\":6,\"fill\":{\"v\":\"near_max\"}}", "2 v overflows"},
    {FA_LAW_VALUE_POWER, CACHE "\"kvcache\":{\"len\":[9],\"new\":2}}",
     "new values are in a tensor of their own"},
    {FA_LAW_GRAD_POWER, "{\"seqlen_q\":6,\"backward\":false}", "=no backward pass"},
    {FA_LAW_GRAD_POWER, "{\"seqlen_q\":6,\"strides\":{\"do\":{\"expand\":[\"s\"]}}}",
     "rows of dO share memory"},
    {FA_LAW_BIAS_SHIFT, MEMEFF "\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}", NULL},
    {FA_LAW_BIAS_SHIFT, "{\"seqlen_q\":6}", "no bias"},
    {FA_LAW_PAGE_PERMUTATION, CACHE "\"kvcache\":{\"len\":[9]}}", "the cache has no pages"},
    {FA_LAW_CACHE_CONTIGUOUS, CACHE "\"kvcache\":{\"len\":[9]}}", "the cache has no pages"},
    {FA_LAW_CACHE_APPENDED, CACHE "\"kvcache\":{\"len\":[9]}}", "there are no new keys"},
    {FA_LAW_CACHE_APPENDED,
     CACHE "\"head_dim\":16,\"kvcache\":{\"len\":[9],\"new\":1,\"rotary\":{\"dim\":16}}}",
     "queries turn by how many keys there were"},
    {FA_LAW_PART_PERMUTATION, "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":1}}",
     "there is one part"},
    {FA_LAW_PART_EMPTY,
     "{\"family\":\"merge\",\"batch\":2,\"seqlen_q\":6,\"merge\":{\"parts\":2},\"strides\":{\"do\":{"
     "\"expand\":[\"b\"]}}}",
     "rows of dO share memory"},
    {FA_LAW_CACHE_CONTIGUOUS, CACHE "\"batch\":2,\"kvcache\":{\"len\":[0,9],\"page_size\":4}}", NULL},
    {FA_LAW_MERGE_RANGES, "{\"batch\":2,\"seqlen_q\":6,\"seqlen_k\":8}", NULL},
    {FA_LAW_PART_NESTED, "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":2}}",
     "fewer than three parts"},
    {FA_LAW_PART_NESTED, "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":3}}", NULL},
    {FA_LAW_KEY_PERMUTATION, PACKED_BIAS "}", "entries share keys of the bias"},
    {FA_LAW_HEAD_PERMUTATION, "{\"seqlen_q\":6,\"heads_q\":4,\"heads_kv\":1}", "there is one KV head"},
    {FA_LAW_BATCH_ALONE,
     CACHE "\"batch\":2,\"kvcache\":{\"len\":[9,7]},\"bias\":{\"shape\":[\"b\",1,\"q\",\"k\"]}}",
     "the bias goes by entry"},
    {FA_LAW_BATCH_ALONE,
     CACHE "\"batch\":2,\"kvcache\":{\"len\":[9,7]},\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}", NULL},
    {FA_LAW_VARLEN_SEPARATE,
     "{\"family\":\"kvcache\",\"cu_seqlens_q\":[0,2,5],\"seqlen_k\":32,\"kvcache\":{\"len\":[9,12]}}",
     "rows of different tensors"},
    {FA_LAW_VARLEN_SEPARATE,
     "{\"family\":\"flex\"," VARLEN
     ",\"block_sparse\":{\"q_block\":16,\"kv_block\":16,\"density\":0.9,\"seed\":\"1\"}}",
     "block lists go by the longest length"},
    {FA_LAW_VARLEN_SEPARATE, "{\"family\":\"memeff\"," VARLEN "," DROPOUT "}",
     "dropout goes by the longest length"},
    {FA_LAW_CAUSAL_PREFIX,
     "{\"family\":\"memeff\",\"seqlen_q\":6,\"alibi\":{},\"mask\":{\"type\":\"causal\",\"align\":\"top_"
     "left\"}}",
     "slopes go by the lengths"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"empty_lse\":\"0\"," CAUSAL "}", "may be that of no key"},
    {FA_LAW_MERGE_RANGES, MEMEFF "\"empty_lse\":\"0\",\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     "may be that of no key"},
    {FA_LAW_WINDOW_OPEN, MEMEFF "\"head_dim\":8}", "windows under a causal mask only"},
    {FA_LAW_BIAS_MASK,
     MEMEFF "\"seqlen_k\":9,\"mask\":{\"type\":\"window\",\"left\":0,\"right\":0},\"bias\":{\"shape\":[1,1,"
            "\"q\",\"k\"]}}",
     NULL},
    {FA_LAW_BIAS_MASK,
     MEMEFF "\"seqlen_k\":9,\"mask\":{\"type\":\"window\",\"align\":\"top_left\",\"left\":0,\"right\":2},"
            "\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     NULL},
    {FA_LAW_BIAS_MASK,
     MEMEFF "\"seqlen_k\":9,\"mask\":{\"type\":\"window\",\"align\":\"top_left\",\"left\":-1,\"right\":2},"
            "\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     NULL},
    {FA_LAW_BIAS_MASK,
     MEMEFF "\"seqlen_k\":9,\"mask\":{\"type\":\"window\",\"align\":\"top_left\",\"left\":2,\"right\":0},"
            "\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     NULL},
    {FA_LAW_BIAS_MASK,
     "{\"family\":\"memeff\",\"heads_q\":2," VARLEN "," CAUSAL ",\"bias\":{\"shape\":[1,1,\"q\",\"k\"]}}",
     "entries have different masks, and one bias"},
    {FA_LAW_BIAS_SHIFT, PACKED_BIAS "}", "of plain rows only"},
    {FA_LAW_BIAS_SHIFT,
     MEMEFF "\"bias\":{\"shape\":[\"b\",1,\"q\",\"k\"]},\"strides\":{\"bias\":{\"expand\":[\"b\"]}}}",
     "elements of the bias share memory"},
    {FA_LAW_VALUE_POWER, "{\"seqlen_q\":6,\"grad_lse\":true}", "dLSE would have to double too"},
    {FA_LAW_PAGE_PERMUTATION,
     CACHE
     "\"batch\":2,\"kvcache\":{\"len\":[9,7],\"page_size\":4},\"strides\":{\"k\":{\"expand\":[\"b\"]}}}",
     "pages share memory"},
    {FA_LAW_PAGE_PERMUTATION,
     CACHE
     "\"batch\":2,\"kvcache\":{\"len\":[9,7],\"page_size\":4},\"strides\":{\"v\":{\"expand\":[\"b\"]}}}",
     "pages share memory"},
    {FA_LAW_LIST_ORDER, CACHE "\"kvcache\":{\"len\":[9]}}", "it has no lists of keys"},
    {FA_LAW_PART_PERMUTATION, "{\"seqlen_q\":6}", "there are no parts"},
    {FA_LAW_PART_EMPTY,
     "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":2},\"strides\":{\"do\":{\"expand\":[\"s\"]}}"
     "}",
     "rows of dO share memory"},
    {FA_LAW_BATCH_ALONE, MEMEFF "\"bias\":{\"shape\":[1,1,\"q\",\"k\"],\"grad\":true}}", NULL},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"packed\":\"qkv\"}", NULL},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"empty_lse\":\"0\"}", NULL}, /* every row has keys in both */
    {FA_LAW_MERGE_RANGES, MEMEFF CAUSAL "}", "cannot be cut at a key"},
    {FA_LAW_MERGE_RANGES,
     "{\"family\":\"flex\",\"seqlen_q\":6,\"mask\":{\"type\":\"causal\",\"align\":\"top_left\"}}",
     "cannot be cut at a key"},
    {FA_LAW_MERGE_RANGES, "{\"seqlen_q\":6,\"seqlen_k\":9," CAUSAL "}", NULL},
    {FA_LAW_CAUSAL_PREFIX, "{\"seqlen_q\":6,\"seqlen_k\":9," CAUSAL "}", NULL},
    {FA_LAW_KEY_PERMUTATION, "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":2}}",
     "there are no queries and keys"},
    {FA_LAW_REPEAT, "{\"family\":\"merge\",\"seqlen_q\":6,\"merge\":{\"parts\":2}}", NULL},
    {FA_LAW_BATCH_ALONE, CACHE "\"batch\":2,\"kvcache\":{\"len\":[20,20]},\"topk\":{\"k\":16}}",
     "its lists name keys by their places"},
    {FA_LAW_REPEAT, CACHE "\"batch\":2,\"kvcache\":{\"len\":[20,20]},\"topk\":{\"k\":16}}", NULL},
    {FA_LAW_BATCH_ALONE, "{\"batch\":2,\"seqlen_q\":6,\"sinks\":true}", "a sink counts once in each row"},
    {FA_LAW_WINDOW_OPEN, "{\"batch\":2,\"seqlen_q\":6,\"sinks\":true}", NULL},
    {FA_LAW_BATCH_ALONE, "{\"family\":\"flex\",\"batch\":2,\"seqlen_q\":6,\"score_mod\":\"score + kv_idx\"}",
     "its expressions may look at positions"},
    {FA_LAW_BATCH_ALONE, "{\"family\":\"flex\",\"batch\":2,\"seqlen_q\":6,\"mask_mod\":\"kv_idx < 4\"}",
     "its expressions may look at positions"},
    {FA_LAW_VALUE_POWER, "{\"family\":\"flex\",\"batch\":2,\"seqlen_q\":6,\"mask_mod\":\"kv_idx < 4\"}",
     NULL},
    {FA_LAW_GRAD_POWER, "{\"family\":\"flex\",\"batch\":2,\"seqlen_q\":6,\"score_mod\":\"score + kv_idx\"}",
     NULL},
    {FA_LAW_REPEAT, "{\"seqlen_q\":6,\"expect\":\"reject\"}", "it must be refused"},
    {FA_LAW_REPEAT, "{" VARLEN ",\"lse_layout\":\"padded\"}", "its LSE is padded"},
    {FA_LAW_CACHE_CONTIGUOUS,
     CACHE
     "\"batch\":2,\"kvcache\":{\"len\":[9,7],\"page_size\":4},\"strides\":{\"q\":{\"expand\":[\"b\"]}}}",
     NULL},
    {FA_LAW_CACHE_APPENDED,
     CACHE "\"batch\":2,\"kvcache\":{\"len\":[9,7],\"new\":2},\"strides\":{\"q\":{\"expand\":[\"b\"]},\"k_"
           "new\":{\"expand\":[\"b\"]}}}",
     NULL},
    {FA_LAW_VARLEN_SEPARATE, "{\"heads_q\":2," VARLEN ",\"alibi\":{\"slopes\":[[0.5,0.25],[0.125,0.75]]}}",
     NULL},
};

/* What begins with = is all that is said. */
static bool is_said(const char *said, const char *reason) {
  return *reason == '=' ? strcmp(said, reason + 1) == 0 : strstr(said, reason) != NULL;
}

/* reason NULL: it passes. */
static void check(const fa_backend *b, fa_law law, const char *json, const char *reason) {
  static fa_result r;
  fa_case c;
  fa_error err = {""};
  const fa_run_config config = {.backend = b, .n_threads = 1};
  fa_result_init(&r);
  CHECK_MSG(fa_case_from_text(json, &c, &err) == FA_OK, "%s: %s", json, err.text);
  c.law = law;
  CHECK_MSG(fa_run_case(&c, &config, &r, &err) == FA_OK, "%s: %s", json, err.text);
  CHECK_MSG(reason ? r.state == FA_SKIP && is_said(r.reason, reason) : r.state == FA_PASS,
            "%s %s: %s: %s, not %s", fa_law_describe(law)->name, json, fa_state_name(r.state), r.reason,
            reason ? reason : "PASS");
  fa_result_free(&r);
  fa_case_free(&c);
}

static void declare_mean(void *self, const fa_problem *p, fa_declaration *out) {
  (void)self, (void)p;
  out->contract.o_of_empty = FA_O_EMPTY_MEAN_V;
}

/* Cases in which some row may see no key, of a subject that has values of its own for it; and those in which every row sees one. */
static void test_own_empty_rows(void) {
  static const char *const may[] = {"{\"seqlen_q\":6," CAUSAL "}",
                                    "{\"seqlen_q\":6,\"seqused_k\":[4]}",
                                    "{\"seqlen_q\":6,\"leftpad_k\":[2]}",
                                    CACHE "\"kvcache\":{\"len\":[9]}}",
                                    "{" VARLEN "}",
                                    "{\"seqlen_q\":6,\"seqlen_k\":0}",
                                    MEMEFF "\"bias\":{\"shape\":[1,1,1,\"k\"]}}",
                                    "{\"family\":\"flex\",\"seqlen_q\":6,\"mask_mod\":\"kv_idx < 9\"}",
                                    "{\"family\":\"flex\",\"seqlen_q\":6,\"score_mod\":\"score + 1.0\"}",
                                    BLOCKS "}"},
                           *const none[] = {"{\"seqlen_q\":6}", "{\"seqlen_q\":6,\"seqlen_k\":1}",
                                            "{\"seqlen_q\":6,\"alibi\":{}}"};
  fa_backend b = fa_backend_ref_f32;
  b.declare = declare_mean;
  for (size_t i = 0; i < sizeof may / sizeof *may; ++i)
    check(&b, FA_LAW_REPEAT, may[i], "rows may have no visible key");
  for (size_t i = 0; i < sizeof none / sizeof *none; ++i) check(&b, FA_LAW_REPEAT, none[i], NULL);
}

static unsigned forward_alone(void *self, const fa_problem *p, char *why, size_t size) {
  return fa_backend_ref_f32.supports(self, p, why, size) & FA_PASS_FORWARD;
}

/* What a subject without a backward has in its gradients is nobody's business. */
static void test_forward_alone(void) {
  fa_backend b = fa_backend_ref_f32;
  b.supports = forward_alone;
  check(&b, FA_LAW_SINK_NONE, "{\"seqlen_q\":6,\"sinks\":true}", NULL);
  check(&b, FA_LAW_KEY_PERMUTATION, "{\"seqlen_q\":6}", NULL);
  check(&b, FA_LAW_GRAD_POWER, "{\"seqlen_q\":6}", "the backend has no backward pass for it");
}

/* ---- laws that are broken ---- */

/* The last element of this output is wrong in this run. */
static struct {
  uint64_t run;
  fa_tensor_id id;
  double factor, added;
} wrong;

static fa_status run_wrong(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  const fa_tensor *one = &t->t[wrong.id];
  int64_t at[FA_MAX_RANK];
  if (status != FA_OK || opt->schedule_seed != wrong.run) return status;
  fa_tensor_unravel(one, fa_tensor_count(one) - 1, at);
  fa_tensor_set(one, at, fa_tensor_get(one, at) * wrong.factor + wrong.added);
  return FA_OK;
}

static void test_broken(void) {
  static const struct {
    fa_law law;
    const char *json;
    uint64_t run;
    fa_tensor_id id;
    double factor, added;
    const char *says;
  } broken[] = {
      {FA_LAW_SCALE_POWER, "{\"seqlen_q\":6}", 1, FA_T_O, 1, 0.25, "o: 1 of "},
      {FA_LAW_GRAD_POWER, "{\"seqlen_q\":6}", 1, FA_T_DV, 1 + 0x1p-10, 0, "dv: 1 of "}, /* the next number */
      {FA_LAW_MERGE_RANGES, "{\"heads_q\":2,\"seqlen_q\":6}", 1, FA_T_LSE, 1, 1, "in 1 of 12 rows"},
      {FA_LAW_BATCH_ALONE, CACHE "\"batch\":2,\"kvcache\":{\"len\":[30,30],\"new\":2}}", 1, FA_T_K, 1, 1,
       "k: 1 of 128 elements"},
      {FA_LAW_BATCH_ALONE, CACHE "\"batch\":2,\"kvcache\":{\"len\":[30,30],\"new\":2}}", 1, FA_T_V, 1, 1,
       "v: 1 of 128 elements"}};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i) {
    static fa_result r;
    fa_backend b = fa_backend_ref_f32;
    fa_case c;
    fa_error err = {""};
    b.run = run_wrong;
    const fa_run_config config = {.backend = &b, .n_threads = 1};
    wrong.run = broken[i].run, wrong.id = broken[i].id, wrong.factor = broken[i].factor,
    wrong.added = broken[i].added;
    fa_result_init(&r);
    REQUIRE(fa_case_from_text(broken[i].json, &c, &err) == FA_OK);
    c.law = broken[i].law;
    CHECK_MSG(fa_run_case(&c, &config, &r, &err) == FA_OK, "%s", err.text);
    CHECK_MSG(r.state == FA_FAIL && strstr(r.reason, broken[i].says), "%s: %s: %s, not %s",
              fa_law_describe(c.law)->name, fa_state_name(r.state), r.reason, broken[i].says);
    CHECK_MSG(broken[i].id != FA_T_K || strstr(r.reason, ", the same bits"), "%s", r.reason);
    fa_result_free(&r);
    fa_case_free(&c);
  }
}

/* ---- runs that do not end ---- */

static struct { int stops, n; /* the run that races, and how many there were */ } races;

/* What a run that raced has in its outputs is nobody's business. */
static fa_status run_raced(void *self, const fa_problem *p, fa_tensors *t, const fa_run_options *opt,
                           fa_outcome *out, fa_error *err) {
  const fa_status status = fa_backend_ref_f32.run(self, p, t, opt, out, err);
  int64_t at[FA_MAX_RANK];
  if (status != FA_OK || races.n++ != races.stops) return status;
  for (int id = 0; id < FA_T_COUNT; ++id)
    for (int64_t e = 0;
         fa_tensors_written_by(opt->passes) >> id & 1 && t->t[id].data && e < fa_tensor_count(&t->t[id]);
         ++e) {
      fa_tensor_unravel(&t->t[id], e, at);
      fa_tensor_set(&t->t[id], at, 99);
    }
  out->state = FA_SUBJECT_RACE;
  snprintf(out->text, sizeof out->text, "it raced");
  return FA_OK;
}

/* Whichever run of a law stops, that is all there is to say. */
static void test_stopped(void) {
  fa_backend b = fa_backend_ref_f32;
  b.run = run_raced;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    for (races.stops = 0; !cases[i].reason && races.stops < 4; ++races.stops) {
      static fa_result r;
      fa_case c;
      fa_error err = {""};
      const fa_run_config config = {.backend = &b, .n_threads = 1};
      races.n = 0;
      fa_result_init(&r);
      REQUIRE(fa_case_from_text(cases[i].json, &c, &err) == FA_OK);
      c.law = cases[i].law;
      CHECK_MSG(fa_run_case(&c, &config, &r, &err) == FA_OK, "%s", err.text);
      const bool stopped = races.n > races.stops;
      CHECK_MSG(stopped
                    ? r.state == FA_RACE && strcmp(r.reason, "it raced") == 0 && !r.law_broken && !r.notes[0]
                    : r.state == FA_PASS,
                "%s %s, run %d: %s: %s", fa_law_describe(c.law)->name, cases[i].json, races.stops,
                fa_state_name(r.state), r.reason);
      CHECK(!stopped || races.n == races.stops + 1); /* and no other is run */
      fa_result_free(&r);
      fa_case_free(&c);
    }
}

/* What a law writes into its inputs stays within them. */
static void test_sinks_end(void) {
  static fa_result r;
  const fa_run_config config = {.backend = &fa_backend_ref_f32, .n_threads = 1};
  fa_error err = {""};
  fa_case c;
  fa_result_init(&r);
  REQUIRE(fa_case_from_text("{\"heads_q\":3,\"seqlen_q\":4,\"head_dim\":8,\"sinks\":true}", &c, &err) ==
          FA_OK);
  c.law = FA_LAW_SINK_NONE;
  fa_law_work w = {.c = &c, .config = &config, .r = &r, .passes = FA_PASS_FORWARD | FA_PASS_BACKWARD};
  CHECK(fa_law_sink_none(&w, &err) == FA_OK);
  fa_check_memory(&w.base.p, &w.base.in, &w.base.in, FA_POISON_A, &r);
  CHECK_MSG(r.state == FA_UNTESTED, "%s: %s", fa_state_name(r.state), r.reason);
  fa_law_side_free(&w.base);
  fa_law_side_free(&w.other);
  fa_result_free(&r);
  fa_case_free(&c);
}

int main(void) {
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    check(&fa_backend_ref_f32, cases[i].law, cases[i].json, cases[i].reason);
  test_own_empty_rows();
  test_forward_alone();
  test_broken();
  test_stopped();
  test_sinks_end();
  return check_done();
}
