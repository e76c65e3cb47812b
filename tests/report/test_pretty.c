/* Entries laid out without a tree are what cJSON prints; and real numbers hardly ever need cJSON. */
#include "report/journal_line.h"
#include "report/merge/pretty.h"
#include "tests/support/check.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 7;

static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* What cJSON prints for the value, as the only one of two lists, without these. */
static char *printed(const char *json, bool zero_times) {
  char text[4096];
  snprintf(text, sizeof text, "[[%s]]", json);
  cJSON *tree = cJSON_Parse(text);
  REQUIRE(tree);
  if (zero_times) fa_report_zero_times(tree);
  fa_report_keep_digits(tree);
  char *out = cJSON_Print(tree);
  cJSON_Delete(tree);
  memmove(out, out + 2, strlen(out) - 1);
  out[strlen(out) - 2] = 0;
  return out;
}

/* Accepted or not, nothing wrong may be laid out. Returns true if it was accepted. */
static bool check_like_cjson(const char *json, bool zero_times) {
  fa_text out = {0};
  const bool good = fa_pretty(&out, json, strlen(json), 2, zero_times);
  fa_text_add(&out, "", 1);
  if (good) {
    char *want = printed(json, zero_times);
    CHECK_MSG(strcmp(out.v, want) == 0, "%s\n%s\n%s", json, out.v, want);
    cJSON_free(want);
  }
  fa_text_free(&out);
  return good;
}

static void test_values(void) {
  static const char *const plain[] = {
      "{}",
      "[]",
      "{\"a\":{}}",
      "[[],[1,2],{\"b\":[{}]}]",
      "true",
      "[false,null]",
      "0",
      "-1",
      "123456789012345",
      "{\"name\":\"x\", \"ratios\":{\"o\":0.98333032111591434,\"lse\":0},\"list\":[1, {\"k\":\"v\"}]}",
      "1.9790604710578918e-09",
      "0.00015695851352231255",
      "77.950000000000003",
      "\"\xc3\xa9/\"",
      " {\n\t\"a\" :\t[ 1 ,2\r] } "};
  /* Other digits, or for these cJSON is asked. */
  static const char *const digits[] = {"0.1",
                                       "0.10",
                                       "1e-05",
                                       "12345678901234567.5",
                                       "0.00001234",
                                       "1234567890123456",
                                       "1.2345678901234567e-03",
                                       "-1e300",
                                       "1E-3",
                                       "5e-324"};
  static const char *const odd[] = {"\"a\\n\"",
                                    "\"\\u00e9\"",
                                    "\"\t\"",
                                    "-0",
                                    "1e3",
                                    "1.0",
                                    "1e999",
                                    "-0.0",
                                    "+1",
                                    "1.2.3",
                                    ".5",
                                    "1e-400",
                                    "0.30000000000000000000000000000000000000000000001"};
  for (size_t i = 0; i < sizeof digits / sizeof *digits; ++i)
    CHECK_MSG(check_like_cjson(digits[i], false), "%s", digits[i]);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; ++i)
    CHECK_MSG(check_like_cjson(plain[i], false), "%s", plain[i]);
  for (size_t i = 0; i < sizeof odd / sizeof *odd; ++i)
    CHECK_MSG(!check_like_cjson(odd[i], false), "%s", odd[i]);
}

static void test_broken(void) {
  static const char *const broken[] = {"{",   "[1,]",       "{\"a\":}", "{\"a\" 1}",  "[1 2]",
                                       "\"a", "{\"a\":1,}", "tru",      "{\"a\":1}x", "{a:1}",
                                       "",    "[1}",        "-",        "e5"};
  for (size_t i = 0; i < sizeof broken / sizeof *broken; ++i) {
    fa_text out = {0};
    CHECK_MSG(!fa_pretty(&out, broken[i], strlen(broken[i]), 2, false), "%s", broken[i]);
    fa_text_free(&out);
  }
}

static void test_times(void) {
  CHECK(
      check_like_cjson("{\"seconds\":1.5,\"started\":\"now\",\"a\":{\"seconds\":0.1,\"started\":4}}", true));
  CHECK(check_like_cjson("{\"seconds\":\"inf\",\"started\":[],\"secondsx\":3,\"list\":[{\"seconds\":2}]}",
                         true));
}

static void test_deep(void) {
  char text[400] = "";
  for (int i = 0; i < 100; ++i) strcat(text, "[");
  for (int i = 0; i < 100; ++i) strcat(text, "]");
  CHECK(!check_like_cjson(text, false));
}

/* Texts of doubles, and the same with another last digit: most of these are no double's. */
static void test_numbers(void) {
  int64_t n = 0, accepted = 0, wrong = 0;
  for (int i = 0; i < 400000; ++i) {
    char text[40], again[40];
    const double scale = pow(10, (double)(draw() % 16) - 9), x = (double)(draw() >> 11) * 0x1p-53 * scale;
    snprintf(text, sizeof text, "%.17g", draw() % 2 ? x : (double)(float)x);
    const bool changed = draw() % 2;
    char *e = strchr(text, 'e');
    if (changed) (e ? e : text + strlen(text))[-1] = (char)('1' + draw() % 9);
    snprintf(again, sizeof again, "%.17g", strtod(text, NULL));
    const bool is = fa_pretty_number(text, strlen(text));
    wrong += is && strcmp(text, again) != 0;
    n += !changed;
    accepted += !changed && is;
  }
  CHECK_MSG(wrong == 0, "%lld numbers would be written otherwise", (long long)wrong);
  CHECK_MSG(accepted > n * 9 / 10, "%lld of %lld numbers need no printing", (long long)accepted,
            (long long)n);
  printf("%lld of %lld numbers need no printing\n", (long long)accepted, (long long)n);
}

int main(void) {
  test_values();
  test_broken();
  test_times();
  test_deep();
  test_numbers();
  return check_done();
}
