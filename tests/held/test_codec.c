/* The text of cases by hand: lines that are written as they were read, numbers that are refused, long strings in messages, and a
 * file that comes from a pipe in many pieces. */
#include "cases/codec/file.h"
#include "cases/codec/json.h"
#include "cases/codec/read.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static const char *const lines[] = {
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"mask\":{\"type\":\"window\","
    "\"left\":2,\"right\":0}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"mask\":{\"type\":\"chunk\","
    "\"left\":0,\"size\":8}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20]}}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"score_mod\":\"score + "
    "x[kv_idx]\",\"buffers\":{\"x\":{"
    "\"shape\":[20],\"fill\":\"uniform\"}}}",
    "{\"family\":\"flex\",\"dtype\":\"f16\",\"seqlen_q\":20,\"head_dim\":16,\"block_sparse\":{\"q_block\":16,"
    "\"kv_block\":16,"
    "\"kv_num_blocks\":[[[1,2]]],\"kv_indices\":[[[[0,1],[0,1]]]]}}",
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"seqlen_k\":20,\"head_dim\":16,\"alibi\":{\"slopes\":[0.5]},"
    "\"kvcache\":{\"len\":[9],"
    "\"new\":1,\"rotary\":{\"dim\":16}}}",
    "{\"family\":\"kvcache\",\"dtype\":\"f16\",\"seqlen_k\":20,\"head_dim\":16,\"kvcache\":{\"len\":[9],"
    "\"page_size\":4,\"rotary\":{\"dim\":16}}}",
    "{\"family\":\"flash\",\"dtype\":\"bf16\",\"seqlen_q\":20,\"head_dim\":16,\"quantized\":{\"dtype\":"
    "\"e4m3\",\"queries\":true}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"fill\":{\"q\":\"zero\"}}",
    "{\"family\":\"flash\",\"dtype\":\"f16\",\"seqlen_q\":4,\"head_dim\":16,\"data_seed\":\"2748\",\"law\":"
    "\"repeat\"}",
};

static void check_lines(void) {
  for (size_t i = 0; i < sizeof lines / sizeof *lines; ++i) {
    fa_case c;
    fa_error err = {""};
    CHECK_MSG(fa_case_from_text(lines[i], &c, &err) == FA_OK, "%s: %s", lines[i], err.text);
    char *text = fa_case_to_line(&c);
    CHECK_MSG(text && strcmp(text, lines[i]) == 0, "\n  read    %s\n  written %s", lines[i], text);
    free(text);
    fa_case_free(&c);
  }
}

/* ---- numbers ---- */

static bool is_seed(const char *text, uint64_t want) {
  char json[200];
  fa_case c;
  fa_error err = {""};
  snprintf(json, sizeof json, "{\"data_seed\":\"%s\"}", text);
  const bool good = fa_case_from_text(json, &c, &err) == FA_OK;
  CHECK_MSG(!good || c.data_seed == want, "%s: %llu", text, (unsigned long long)c.data_seed);
  if (good) fa_case_free(&c);
  return good;
}

static void check_seeds(void) {
  CHECK(is_seed("0xaBcD", 0xabcd) && is_seed("0xffffffffffffffff", UINT64_MAX) && is_seed("0", 0));
  CHECK(is_seed("18446744073709551615", UINT64_MAX) && is_seed("0x0000000000000001", 1));
  CHECK(!is_seed("0x00000000000000001", 1)); /* of 17 digits */
  CHECK(!is_seed("18446744073709551616", 0) && !is_seed("1a", 0) && !is_seed("0xg", 0) && !is_seed("01", 1));
  CHECK(!is_seed("", 0) && !is_seed("0x", 0) && !is_seed("-1", 0) && !is_seed("0xG", 0) && !is_seed("1:", 0));
}

/* ---- messages ---- */

/* 60 bytes and no more, but no part of a character. */
static void check_describe(void) {
  static const char sixty[] = "012345678901234567890123456789012345678901234567890123456789";
  const struct {
    const char *tail, *want;
    int keep; /* of the sixty */
  } texts[] = {{"", "\"%.*s\"", 60},
               {"x", "\"%.*s...\"", 60},
               {"\xc3\xa9", "\"%.*s...\"", 60},
               {"\xe2\x82\xac!", "\"%.*s...\"", 59},
               {"\xc3\xa9!", "\"%.*s...\"", 59}};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
    char text[100], want[100], buffer[80];
    snprintf(text, sizeof text, "%.*s%s", texts[i].keep, sixty, texts[i].tail);
    snprintf(want, sizeof want, texts[i].want, texts[i].keep, sixty);
    cJSON *v = cJSON_CreateString(text);
    CHECK_MSG(strcmp(fa_read_describe(v, buffer), want) == 0, "%zu: %s, not %s", i, buffer, want);
    cJSON_Delete(v);
  }
}

/* ---- from a pipe ---- */

/* More than two pieces, of which the second is as large as what is there, and more. */
static void check_pipe(void) {
  enum { N = 9000 };
  fa_case_list list = {0};
  fa_error err = {""};
  FILE *f = tmpfile();
  REQUIRE(f);
  fputs("{\"fa_cases\":1,\"cases\":[\n", f);
  for (int i = 0; i < N; ++i)
    fprintf(f, "%s{\"name\":\"case number %d\",\"seqlen_q\":%d}", i ? ",\n" : "", i, i % 50);
  fputs("]}\n", f);
  CHECK(ftell(f) > 3 * 65536);
  rewind(f);
  FILE *before = stdin;
  stdin = f;
  CHECK_MSG(fa_case_file_load("-", NULL, &list, &err) == FA_OK, "%s", err.text);
  stdin = before;
  CHECK(list.n == N && list.v[N - 1].problem.seqlen_q == (N - 1) % 50);
  fa_case_list_free(&list);
  fclose(f);
}

int main(void) {
  check_lines();
  check_seeds();
  check_describe();
  check_pipe();
  return check_done();
}
