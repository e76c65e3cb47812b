/* The canonical form: parse(print(c)) is c, and print(parse(print(c))) is print(c), over random cases of
 * every key. Texts with random damage must be rejected or understood, never half read. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/recipe/case.h"
#include "tests/support/check.h"
#include "tests/support/random_case.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

#define N_CASES 6000
#define N_DAMAGED 40000

static void check_roundtrip(const fa_case *c, const char *line) {
  fa_case back;
  fa_error err = {""};
  fa_status status = fa_case_from_text(line, &back, &err);
  CHECK_MSG(status == FA_OK, "%s\n %s", err.text, line);
  if (status != FA_OK) return;
  char *again = fa_case_to_line(&back);
  CHECK_MSG(fa_case_equal(c, &back), "%s\n%s", line, again);
  CHECK_MSG(strcmp(line, again) == 0, "%s\n%s", line, again);
  CHECK(strchr(line, '\n') == NULL);
  free(again);
  fa_case_free(&back);
}

static void test_random_cases(void) {
  fa_rng r = fa_rng_make(1, 1);
  for (int i = 0; i < N_CASES; ++i) {
    fa_case c, copy;
    random_case(&r, &c);
    char *line = fa_case_to_line(&c);
    REQUIRE(line);
    check_roundtrip(&c, line);
    CHECK(fa_case_copy(&copy, &c) == FA_OK);
    CHECK(fa_case_equal(&c, &copy));
    /* The tree, with its raw numbers, is a case too. */
    cJSON *tree;
    fa_case from_tree;
    fa_error err = {""};
    CHECK(fa_case_to_json(&c, &tree) == FA_OK);
    fa_status status = fa_case_from_json(tree, "$", &from_tree, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    if (status == FA_OK) {
      CHECK(fa_case_equal(&c, &from_tree));
      fa_case_free(&from_tree);
    }
    cJSON_Delete(tree);
    free(line);
    fa_case_free(&copy);
    fa_case_free(&c);
  }
}

/* fa_case_equal must notice a change of any key; comparing each random line with the next does not test
 * that. */
static void test_unequal(void) {
  static const char *const base =
      "\"family\":\"memeff\",\"batch\":2,\"heads_q\":2,\"seqlen_q\":4,\"head_dim\":8";
  static const char *const change[] = {"\"name\":\"x\"",
                                       "\"note\":\"x\"",
                                       "\"dtype\":\"bf16\"",
                                       "\"heads_kv\":1",
                                       "\"seqlen_k\":5",
                                       "\"head_dim_v\":9",
                                       "\"seqused_k\":[1,2]",
                                       "\"seqused_k\":[1,1]",
                                       "\"leftpad_k\":[1,2]",
                                       "\"scale\":1",
                                       "\"scale\":-0.0",
                                       "\"scale\":0",
                                       "\"softcap\":1",
                                       "\"mask\":{\"type\":\"causal\"}",
                                       "\"mask\":{\"align\":\"top_left\"}",
                                       "\"mask\":{\"type\":\"window\",\"left\":1}",
                                       "\"mask\":{\"type\":\"window\",\"right\":1}",
                                       "\"alibi\":{}",
                                       "\"alibi\":{\"slopes\":[1,2]}",
                                       "\"alibi\":{\"slopes\":[[1,2],[1,2]]}",
                                       "\"alibi\":{\"slopes\":[1,3]}",
                                       "\"alibi\":{\"slopes\":[0.0625,0.00390625]}",
                                       "\"bias\":{}",
                                       "\"bias\":{\"grad\":false}",
                                       "\"bias\":{\"shape\":[1,\"h\",\"q\",\"k\"]}",
                                       "\"bias\":{\"shape\":[\"b\",1,\"q\",\"k\"]}",
                                       "\"bias\":{\"shape\":[\"b\",\"h\",1,\"k\"]}",
                                       "\"bias\":{\"fill\":\"small\"}",
                                       "\"dropout\":{\"p\":0.5}",
                                       "\"dropout\":{\"seed\":\"1\"}",
                                       "\"dropout\":{\"offset\":\"1\"}",
                                       "\"splits\":1",
                                       "\"deterministic\":true",
                                       "\"backward\":false",
                                       "\"grad_lse\":true",
                                       "\"empty_lse\":\"0\"",
                                       "\"fill\":\"small\"",
                                       "\"fill\":{\"q\":\"small\"}",
                                       "\"data_seed\":\"2\"",
                                       "\"expect\":\"reject\"",
                                       "\"layout\":\"sbhd\"",
                                       "\"packed\":\"kv\"",
                                       "\"strides\":{\"q\":{\"gap\":[1,0,0]}}",
                                       "\"strides\":{\"q\":{\"gap\":[0,1,0]}}",
                                       "\"strides\":{\"q\":{\"expand\":[\"h\"]}}",
                                       "\"strides\":{\"q\":{\"offset\":1}}",
                                       "\"strides\":{\"dq\":{\"offset\":1}}",
                                       "\"cu_seqlens_q\":[0,1,4],\"cu_seqlens_k\":[0,4,4]",
                                       "\"cu_seqlens_q\":[0,1,5],\"cu_seqlens_k\":[0,4,4]",
                                       "\"cu_seqlens_q\":[0,1,4],\"cu_seqlens_k\":[0,4,8]",
                                       ""};
  enum { N = sizeof change / sizeof *change };
  static fa_case c[N];
  for (int i = 0; i < N; ++i) {
    char text[500];
    fa_error err = {""};
    snprintf(text, sizeof text, "{%s%s%s}", base, *change[i] ? "," : "", change[i]);
    fa_status status = fa_case_from_text(text, &c[i], &err);
    if (status != FA_OK) fprintf(stderr, "%s: %s\n", text, err.text);
    REQUIRE(status == FA_OK);
  }
  for (int i = 0; i < N; ++i)
    for (int j = 0; j < N; ++j) {
      char *a = fa_case_to_line(&c[i]), *b = fa_case_to_line(&c[j]);
      CHECK_MSG(fa_case_equal(&c[i], &c[j]) == (i == j), "%s\n%s", a, b);
      CHECK_MSG((strcmp(a, b) == 0) == (i == j), "%s\n%s", a, b);
      free(a);
      free(b);
    }
  for (int i = 0; i < N; ++i) fa_case_free(&c[i]);
}

static void test_canonical(void) {
  static const struct {
    const char *in, *out;
  } pair[] = {
      {"{}", "{\"family\":\"flash\",\"dtype\":\"f16\"}"},
      {"{\"batch\": 1, \"heads_q\": 4, \"heads_kv\": 4, \"seqlen_q\": 7, \"seqlen_k\": 7, \"head_dim\": 64, "
       "\"head_dim_v\": 64, \"scale\": 0.125, \"softcap\": 0, \"mask\": {}, \"dropout\": {}, \"backward\": "
       "true, "
       "\"empty_lse\": \"+inf\", \"fill\": \"normal\", \"data_seed\": \"0x1\", \"strides\": {\"q\": {}}, "
       "\"packed\": \"none\", \"layout\": \"bshd\", \"expect\": \"pass\", \"buffers\": {}, \"name\": \"\"}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"heads_q\":4,\"seqlen_q\":7}"},
      {"{\"batch\": 2, \"seqlen_q\": 99, \"seqlen_k\": 98, \"cu_seqlens_q\": [0, 1, 5], \"cu_seqlens_k\": "
       "[0, 3, 3]}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"cu_seqlens_q\":[0,1,5],\"cu_seqlens_k\":[0,3,3]}"},
      {"{\"scale\": 0.1}", "{\"family\":\"flash\",\"dtype\":\"f16\",\"scale\":0.1}"},
      {"{\"scale\": 0.1000000000000000055511151231257827}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"scale\":0.1}"},
      {"{\"scale\": 0.10000000000000002}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"scale\":0.10000000000000002}"},
      {"{\"alibi\": {\"slopes\": [0.1]}, \"heads_q\": 1}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"alibi\":{\"slopes\":[0.1]}}"},
      {"{\"fill\": {\"default\": \"small\", \"q\": \"small\", \"v\": \"normal\"}}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"fill\":{\"default\":\"small\",\"v\":\"normal\"}}"},
      {"{\"dropout\": {\"seed\": \"0xffffffffffffffff\", \"p\": 0.1}}",
       "{\"family\":\"flash\",\"dtype\":\"f16\",\"dropout\":{\"p\":0.1,\"seed\":\"18446744073709551615\"}}"},
  };
  for (size_t i = 0; i < sizeof pair / sizeof *pair; ++i) {
    fa_case c;
    fa_error err = {""};
    fa_status status = fa_case_from_text(pair[i].in, &c, &err);
    CHECK_MSG(status == FA_OK, "%s", err.text);
    if (status != FA_OK) continue;
    char *line = fa_case_to_line(&c);
    CHECK_MSG(strcmp(line, pair[i].out) == 0, "\n got  %s\n want %s", line, pair[i].out);
    free(line);
    fa_case_free(&c);
  }
}

/* ---- damaged text ---- */

static void damage(fa_rng *r, char *text, size_t size) {
  static const char *const piece[] = {"-1",   "0",          "1e999", "null",    "true",    "[]",  "{}",
                                      "\"\"", "0.5",        "[[1]]", "1048577", "\"-1\"",  ",",   "}",
                                      "[",    "4294967296", "1e18",  "-0",      "\\u0000", "\xff"};
  size_t n = strlen(text);
  for (int64_t k = fa_rng_range(r, 1, 3); k > 0; --k) {
    size_t at = n ? (size_t)fa_rng_below(r, (int64_t)n) : 0, end = at;
    switch (fa_rng_below(r, 4)) {
    case 0: /* one byte becomes another */
      if (n) text[at] = (char)fa_rng_range(r, 1, 255);
      break;
    case 1: /* cut off */
      text[at] = 0;
      break;
    case 2: { /* the number or word here becomes something else */
      const char *new_text = piece[fa_rng_below(r, 20)];
      while (at > 0 && !strchr(":,[{}] ", text[at - 1])) --at;
      while (end < n && !strchr(":,[{}] ", text[end])) ++end;
      if (n - (end - at) + strlen(new_text) + 1 > size) break;
      memmove(text + at + strlen(new_text), text + end, n - end + 1);
      memcpy(text + at, new_text, strlen(new_text));
      break;
    }
    default: /* a part is removed */
      end = at + (size_t)fa_rng_below(r, 20);
      if (end > n) end = n;
      memmove(text + at, text + end, n - end + 1);
    }
    n = strlen(text);
  }
}

static fa_status generate(const char *profile, uint64_t seed, int64_t index, fa_case *out, fa_error *err) {
  (void)index;
  if (strlen(profile) > 20) return fa_fail(err, FA_ERR_INPUT, "$: a long name");
  if (fa_case_init(out) != FA_OK) return FA_ERR_MEMORY;
  out->data_seed = seed;
  return FA_OK;
}

/* Whole files; half of the damaged texts, the other half are random cases. */
static const char *const whole[] = {
    ("{\"fa_cases\":1,\"note\":\"n\",\"defaults\":{\"dtype\":\"bf16\",\"mask\":{\"type\":\"window\"}},"
     "\"cases\":[{\"seqlen_q\":"
     "4},{\"mask\":{\"type\":\"causal\"}}]}"),
    ("{\"fa_cases\":1,\"sweeps\":[{\"base\":{\"name\":\"s\",\"mask\":{\"type\":\"window\",\"left\":1}},"
     "\"over\":{"
     "\"mask.right\":[0,9],\"dropout.p\":[0.5,0],\"strides.q.gap\":[[1,2,3]],\"fill\":[\"zero\",{\"q\":"
     "\"ties\"}],"
     "\"fill.do\":[\"zero\"]}}]}"),
    ("{\"fa_cases\":1,\"sweeps\":[{\"over\":{\"seqlen_q\":[1,64,113],\"head_dim\":[64,128],\"mask\":[{},{"
     "\"type\":"
     "\"causal\"}]}}],\"random\":[{\"count\":3,\"seed\":\"7\",\"profile\":\"varlen\"}]}"),
    ("{\"fa_cases\":1,\"defaults\":{\"family\":\"flex\"},\"sweeps\":[{\"base\":{\"buffers\":{\"a\":{}}},"
     "\"over\":{"
     "\"buffers.a.shape\":[[1],[2,3]],\"block_sparse.density\":[0.5,1],\"block_sparse.q_block\":[1]}}]}"),
    ("{\"seqlen_q\":4}\n{\"seqlen_q\":5,\"family\":\"kvcache\",\"seqlen_k\":8,\"kvcache\":{\"len\":[3]}}\n{}"
     "\n"),
};

static void test_damaged(void) {
  fa_rng r = fa_rng_make(2, 2);
  static char text[1 << 20];
  int n_good = 0;
  for (int i = 0; i < N_DAMAGED; ++i) {
    fa_case c;
    fa_error err = {""};
    fa_case_list list = {0};
    char *line = NULL;
    if (fa_rng_chance(&r, 0.5)) {
      random_case(&r, &c);
      line = fa_case_to_line(&c);
      fa_case_free(&c);
      snprintf(text, sizeof text, "%s", line);
    } else
      snprintf(text, sizeof text, "%s", whole[fa_rng_below(&r, sizeof whole / sizeof *whole)]);
    free(line);
    damage(&r, text, sizeof text);
    fa_status status = fa_case_file_parse(text, strlen(text), "damaged.json", generate, &list, &err);
    CHECK_MSG(status == FA_OK || status == FA_ERR_INPUT, "%s: %s", err.text, text);
    if (status == FA_OK) {
      ++n_good;
      for (int64_t k = 0; k < list.n; ++k) {
        line = fa_case_to_line(&list.v[k]);
        check_roundtrip(&list.v[k], line);
        free(line);
      }
    } else {
      CHECK(list.n == 0);
      CHECK_MSG(strncmp(err.text, "damaged.json:", 13) == 0 && strchr(err.text, '$'), "%s", err.text);
    }
    fa_case_list_free(&list);
  }
  CHECK_MSG(n_good > N_DAMAGED / 100 && n_good < N_DAMAGED / 2, "%d understood", n_good);
}

int main(void) {
  test_random_cases();
  test_unequal();
  test_canonical();
  test_damaged();
  return check_done();
}
