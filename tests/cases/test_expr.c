/* The expression language: what is accepted, what is rejected and how, that printing and parsing are
 * consistent, and that no text makes the parser misbehave. */
#include "cases/base/rng.h"
#include "cases/expr/ast.h"
#include "tests/support/check.h"

#include <string.h>
#include <time.h>

static const fa_capture captures[] = {
    {.name = "slopes", .rank = 1, .shape = {4}, .dtype = FA_F32},
    {.name = "table", .rank = 2, .shape = {4, 9}, .dtype = FA_F32},
    {.name = "one", .rank = 0, .dtype = FA_F32},
    {.name = "doc", .rank = 1, .shape = {100}, .dtype = FA_I32, .below = 3},
    {.name = "keep", .rank = 1, .shape = {100}, .dtype = FA_BOOL},
    {.name = "long_", .rank = 0, .dtype = FA_I64, .below = 3},
    {.name = "half", .rank = 1, .shape = {4}, .dtype = FA_BF16},
};
enum { N_CAPTURES = sizeof captures / sizeof *captures };

static fa_status parse(const char *text, size_t n, fa_expr_kind kind, fa_expr *e, fa_error *err) {
  return fa_expr_parse(text, n, kind, captures, N_CAPTURES, e, err);
}

/* text is accepted, and printed as `canonical` (NULL: unchanged). */
static void good(fa_expr_kind kind, const char *text, const char *canonical) {
  fa_expr e, again;
  fa_error err = {""};
  const fa_status status = parse(text, strlen(text), kind, &e, &err);
  CHECK_MSG(status == FA_OK, "%s: %s", text, err.text);
  if (status != FA_OK) return;
  char *printed = fa_expr_print(&e, captures);
  REQUIRE(printed);
  CHECK_MSG(strcmp(printed, canonical ? canonical : text) == 0, "%s is printed as %s", text, printed);
  CHECK(parse(printed, strlen(printed), kind, &again, &err) == FA_OK);
  CHECK_MSG(fa_expr_equal(&e, &again), "%s", printed);
  CHECK(e.node[e.root].type == (kind == FA_EXPR_SCORE_MOD ? FA_EXPR_FLOAT : FA_EXPR_BOOL));
  fa_expr_free(&again);
  fa_expr_free(&e);
  free(printed);
}

static void bad(fa_expr_kind kind, const char *text, const char *message) {
  fa_expr e;
  fa_error err = {""};
  CHECK_MSG(parse(text, strlen(text), kind, &e, &err) == FA_ERR_INPUT, "%s is read", text);
  CHECK_MSG(strstr(err.text, message) == err.text, "%s: %s, not %s", text, err.text, message);
}

#define SCORE FA_EXPR_SCORE_MOD
#define MASK FA_EXPR_MASK_MOD

static void test_reads(void) {
  good(SCORE, "score", NULL);
  good(SCORE, " score\t+ slopes[ h ]*( kv_idx-q_idx ) ", "score + slopes[h] * (kv_idx - q_idx)");
  good(SCORE, "20 * tanh(score / 20)", NULL);
  good(SCORE, "table[h][q_idx % 9] + table[h, 1] + one", "table[h, q_idx % 9] + table[h, 1] + one");
  good(SCORE, "q_idx >= kv_idx ? score : -inf", NULL);
  good(SCORE, "score + .5 + 5. + 1e3 + 2.5E-2", "score + 0.5 + 5.0 + 1e+03 + 0.025");
  good(SCORE, "3", NULL); /* an int becomes a float */
  good(SCORE, "q_idx > kv_idx", NULL);
  good(SCORE, "min(score, max(1.0, abs(-score))) - floor(sqrt(exp(log(2.0))))", NULL);
  good(MASK, "kv_idx < 37 || q_idx >= kv_idx", NULL);
  good(MASK, "b", NULL);
  good(MASK, "true && !false", NULL);
  good(MASK, "doc[q_idx] == doc[kv_idx]", NULL);
  good(MASK, "!(b == 1) && h / 2 % 2 != 0", NULL);
  good(MASK, "seqlen_k - kv_idx <= seqlen_q", NULL);
  good(MASK, "(q_idx > 1 ? kv_idx : h) > 3", NULL);
  good(MASK, "((((q_idx))))", "q_idx");
}

static void test_reads_more(void) {
  good(MASK, "(q_idx >= kv_idx) & (doc[q_idx] == doc[kv_idx])", NULL);
  good(MASK, "(b == 1) | (h == 2) ^ (h == 3) & true", NULL);
  good(MASK, "b & 1 | h ^ 3", NULL);
  good(MASK, "(b | h) & 1", NULL);
  good(MASK, "((b & h)) == (1)", "(b & h) == 1");
  good(MASK, "q_idx + 1 << 2 > kv_idx >> 1 + b", NULL);
  good(MASK, "(q_idx << 1) + 1 != (kv_idx >> 1)", "(q_idx << 1) + 1 != kv_idx >> 1");
  good(MASK, "~(q_idx > 1)", "!(q_idx > 1)");
  good(MASK, "~q_idx & 7", NULL);
  good(MASK, "b | h && q_idx || (1 < 2)", "b | h && q_idx || 1 < 2");
  good(MASK, "(1 < 2) & 3 & 1", NULL);
  good(SCORE, "pow(abs(score) + 1, 1.5) + erf(score) * sigmoid(score) - ceil(score)", NULL);
  good(SCORE, "floordiv(q_idx - 5, 2) + floormod(-q_idx, 3)", NULL);
  good(SCORE, "int(score * 8) + float(q_idx) / 2 + int(3) + float(score)", NULL);
  good(SCORE, "slopes[int(one)]", NULL);
  good(SCORE, "where(q_idx >= kv_idx, score, -inf)", "q_idx >= kv_idx ? score : -inf");
  good(SCORE, "1 + where(b, where(h, 1, 2), 3)", "1 + (b ? h ? 1 : 2 : 3)");
}

/* C's precedence and associativity. */
static void test_precedence(void) {
  good(SCORE, "score - 1.0 - 2.0", NULL);
  good(SCORE, "(score - 1.0) - 2.0", "score - 1.0 - 2.0");
  good(SCORE, "score - (1.0 - 2.0)", NULL);
  good(SCORE, "score / (2.0 * score)", NULL);
  good(SCORE, "(score / 2.0) * score", "score / 2.0 * score");
  good(SCORE, "-score * 2.0", NULL);
  good(SCORE, "-(score * 2.0)", NULL);
  good(SCORE, "- - +score", "--score");
  good(SCORE, "b ? score : h ? 1.0 : 2.0", NULL);
  good(SCORE, "b ? h ? score : 1.0 : 2.0", NULL);
  good(SCORE, "(b ? score : 1.0) + 1.0", NULL);
  good(MASK, "b || h && q_idx", NULL);
  good(MASK, "keep[kv_idx]", NULL); /* a condition of itself */
  good(MASK, "keep[q_idx] & keep[kv_idx]", NULL);
  good(MASK, "!keep[kv_idx] || doc[q_idx] == long_", NULL);
  good(SCORE, "keep[long_] ? score : half[h]", NULL);
  good(MASK, "(b || h) && q_idx", NULL);
  good(MASK, "(b < h) == (q_idx < 2)", "b < h == q_idx < 2");
  good(MASK, "(1 < 2) < 3", NULL);
}

static void test_refuses(void) {
  bad(SCORE, "", "column 1: the end, where a name, a number or '(' must stand");
  bad(SCORE, "score + foo[h]",
      "column 9: \"foo\" is unknown; known are score, b, h, q_idx, kv_idx, seqlen_q, "
      "seqlen_k, true, false, inf; abs min max exp log sqrt tanh sin cos floor ceil erf sigmoid "
      "pow floordiv floormod int float where; buffers slopes, table, one, doc, keep, long_, half\n  score + "
      "foo[h]\n          "
      "^");
  bad(MASK, "score > 0", "column 1: mask_mod does not know the score");
  bad(MASK, "slopes[h]", "column 1: mask_mod gives a float; it must give a condition");
  bad(MASK, "!one", "column 2: the operand of ! is a float");
  bad(MASK, "one && b", "column 1: an operand of && is a float");
  bad(SCORE, "score ? 1 : 2", "column 1: what stands before ? is a float");
  bad(SCORE, "score % 2", "column 7: % takes ints");
  bad(SCORE, "slopes", "column 1: buffer \"slopes\" has 1 axes, and 0 indices here");
  bad(SCORE, "table[h]", "column 1: buffer \"table\" has 2 axes, and 1 indices here");
  bad(SCORE, "one[h]", "column 1: buffer \"one\" has 0 axes, and 1 indices here");
  bad(MASK, "half[h]", "column 1: mask_mod gives a float; it must give a condition");
  bad(SCORE, "half[h] % 2", "column 9: % takes ints");
  bad(SCORE, "keep[half[h]]", "column 6: index 0 of \"keep\" is a float; indices are ints");
  bad(SCORE, "slopes[score]", "column 8: index 0 of \"slopes\" is a float; indices are ints");
  bad(SCORE, "slopes[h,1,2,3,4]", "column 16: more than 4 indices");
  bad(SCORE, "slopes[h", "column 9: the end, ']' must close the index");
  bad(SCORE, "tanh score", "column 6: \"score\", '(' must follow tanh");
  bad(SCORE, "min(score)", "column 10: \")\", ',' must follow: min takes two arguments");
  bad(SCORE, "tanh(score, 2)", "column 11: \",\", ')' must close the argument of tanh");
  bad(SCORE, "(score", "column 7: the end, ')' must close the parenthesis");
  bad(SCORE, "score)", "column 6: \")\", where an operator or the end must stand");
  bad(SCORE, "score score", "column 7: \"score\", where an operator");
  bad(SCORE, "b ? score", "column 10: the end, ':' must follow: condition ? this : that");
  bad(SCORE, "score & 1", "column 7: & takes ints or conditions; int(x) makes a float an int");
  bad(SCORE, "2 ^ score", "column 3: ^ takes ints or conditions, and is no power; pow(x, y) is");
  bad(SCORE, "score | 1", "column 7: | takes ints");
  bad(SCORE, "score << 1", "column 7: << takes ints; of floats, x * pow(2.0, n)");
  bad(SCORE, "1.5 >> 1", "column 5: >> takes ints");
  bad(SCORE, "~score", "column 1: ~ takes ints or conditions");
  bad(SCORE, "floordiv(score, 2)", "column 1: floordiv takes ints; of floats, floor(x / y)");
  bad(SCORE, "floormod(1, 2.5)", "column 1: floormod takes ints; of floats, x - y * floor(x / y)");
  bad(MASK, "q_idx >= kv_idx & b == h",
      "column 7: a comparison beside & needs parentheses: C and Python read it differently without");
  bad(MASK, "(q_idx >= kv_idx) | b == h", "column 23: a comparison beside | needs parentheses");
  bad(MASK, "b ^ (h) < 2", "column 9: a comparison beside ^ needs parentheses");
  bad(MASK, "where(b, h)", "column 11: \")\", ',' must follow: where takes a condition and two values");
  bad(MASK, "where b", "column 7: \"b\", '(' must follow where");
  bad(MASK, "where(b, h, 1, 2)", "column 14: \",\", ')' must close the arguments of where");
  bad(SCORE, "pow(score)", "column 10: \")\", ',' must follow: pow takes two arguments");
  bad(SCORE, "doc[score]", "column 5: index 0 of \"doc\" is a float");
  bad(MASK, "b = h", "column 3: '=' is no operator here, '==' compares");
  bad(MASK, "b < h < 2", "column 7: comparisons do not chain");
  bad(MASK, "b == h != 2", "column 8: comparisons do not chain");
  bad(MASK, "b @ h", "column 3: '@' has no meaning here");
  bad(SCORE, "score; system(1)", "column 6: ';' has no meaning here");
  bad(SCORE, "0x10", "column 2: 'x' after a number");
  bad(SCORE, "1.5f", "column 4: 'f' after a number");
  bad(SCORE, "1.2.3", "column 4: '.' after a number");
  bad(SCORE, "1e", "column 2: 'e' after a number");
  bad(SCORE, "012", "column 1: an integer with a leading 0");
  bad(SCORE, "2147483648", "column 1: larger than the largest int, 2147483647");
  bad(SCORE, "1e39", "column 1: larger than the largest f32");
  bad(SCORE, "1e-40", "column 1: below the normal range of f32");
  bad(SCORE, "score + \xc3\xa9", "column 9: byte 0xc3; names, numbers and operators are ASCII");
  bad(SCORE, "score + \xff\xfe", "column 9: byte 0xff");
  good(SCORE, "3.4028235e38", "3.4028235e+38");
}

static void like(const char *text, bool want, double want_cap) {
  fa_expr e;
  double cap = -1;
  REQUIRE(parse(text, strlen(text), SCORE, &e, NULL) == FA_OK);
  CHECK_MSG(fa_expr_like_score(&e, &cap) == want, "%s", text);
  CHECK_MSG(cap == want_cap, "%s: %g", text, cap);
  fa_expr_free(&e);
}

/* Expressions that keep scores apart, so that roundings behave like noise. */
static void test_like(void) {
  like("score", true, 0);
  like("score + slopes[h] * (kv_idx - q_idx)", true, 0);
  like("-(2 * score) / 3 - one", true, 0);
  like("20 * tanh(score / 20) + 1", true, 20);
  like("tanh(score / 4.0) * 4.0", true, 4);
  like("q_idx >= kv_idx ? score : -inf", true, 0);
  like("kv_idx < 3 ? -inf : score + 1", true, 0);
  like("float(score) + float(q_idx)", true, 0);
  like("where(q_idx >= kv_idx, score, -inf)", true, 0);
  like("sigmoid(score)", false, 0);
  like("pow(score, 2.0)", false, 0);
  like("0.0", false, 0);
  like("one", false, 0);
  like("score - score", false, 0);
  like("0.01 * score", false, 0);
  like("tanh(score)", false, 0);
  like("20 * tanh(score / 10)", false, 0);
  like("max(score, 0.0)", false, 0);
  like("floor(score)", false, 0);
  like("q_idx >= kv_idx ? score : 1.0", false, 0);
  like("score > 0.0 ? score : -inf", false, 0);
}

/* Long texts: the message shows a part, and the caret is under the right place. */
static void test_caret(void) {
  char text[400];
  fa_expr e;
  fa_error err;
  memset(text, ' ', sizeof text);
  memcpy(text, "score", 5);
  text[300] = '$';
  REQUIRE(parse(text, sizeof text, SCORE, &e, &err) == FA_ERR_INPUT);
  CHECK_MSG(strstr(err.text, "column 301: "), "%s", err.text);
  const char *shown = strchr(err.text, '\n') + 1, *caret = strchr(shown, '\n') + 1;
  CHECK_MSG(strchr(shown, '$') - shown == strchr(caret, '^') - caret, "%s", err.text);
  CHECK(strncmp(shown, "  ...", 5) == 0 && strlen(shown) < 200);
}

static void repeat(char *to, const char *part, int n) {
  *to = 0;
  for (int i = 0; i < n; ++i) memcpy(to + (size_t)i * strlen(part), part, strlen(part) + 1);
}

/* A text of n parts with a middle; returns whether it is accepted. */
static bool reads_nested(const char *before, const char *middle, const char *after, int n, fa_error *err) {
  char *text = malloc((size_t)n * (strlen(before) + strlen(after)) + strlen(middle) + 1);
  fa_expr e;
  REQUIRE(text);
  repeat(text, before, n);
  strcat(text, middle);
  repeat(text + strlen(text), after, n);
  const bool read = parse(text, strlen(text), SCORE, &e, err) == FA_OK;
  if (read) fa_expr_free(&e);
  free(text);
  return read;
}

static void test_limits(void) {
  fa_error err;
  CHECK(reads_nested("(", "score", ")", 100, &err));
  CHECK(!reads_nested("(", "score", ")", 20000, &err) && strstr(err.text, "nested more than 128 deep"));
  CHECK(!reads_nested("-", "score", "", 60000, &err) && strstr(err.text, "nested more than 128 deep"));
  CHECK(!reads_nested("b?1:", "score", "", 10000, &err) && strstr(err.text, "nested more than 128 deep"));
  CHECK(!reads_nested("tanh(", "score", ")", 5000, &err) && strstr(err.text, "nested more than 128 deep"));
  CHECK(!reads_nested("slopes[", "score", "]", 5000, &err) && strstr(err.text, "nested more than 128 deep"));
  CHECK(reads_nested("", "score", "+1.0", 900, &err));
  CHECK(!reads_nested("", "score", "+1.0", 1100, &err) && strstr(err.text, "1000 operations on top"));
  CHECK(!reads_nested("", "score", " ", 70000, &err) && strstr(err.text, "bytes, at most 65536"));
  CHECK(!reads_nested("1", "2", "3", 30000, &err) &&
        strstr(err.text, "a number of 60001 characters, at most 64"));
  CHECK(!reads_nested("x", "y", "z", 30000, &err) &&
        strstr(err.text, "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\" is unknown"));
  fa_expr e;
  CHECK(parse("score\0+ 1", 9, SCORE, &e, &err) == FA_ERR_INPUT && strstr(err.text, "column 6: byte 0x00"));
  CHECK(parse(NULL, 0, SCORE, &e, &err) == FA_ERR_INPUT);
}

/* The largest allowed number of operations, wide and not deep; then one more. */
static void test_nodes(void) {
  static char text[65536];
  fa_expr e;
  fa_error err;
  text[0] = 0;
  for (int i = 0; i < 100; ++i) { /* groups of 40 nodes and one addition */
    strcat(text, i ? "+(" : "(");
    for (int k = 0; k < 20; ++k) strcat(text, k ? "+score" : "score");
    strcat(text, ")");
  }
  CHECK(parse(text, strlen(text), SCORE, &e, &err) == FA_OK && e.n == 100 * 39 + 99);
  fa_expr_free(&e);
  strcat(text,
         "+score*score*score*score*score*score*score*score*score*score*score*score*score*score*score*score");
  for (int k = 0; k < 100; ++k) strcat(text, "+score");
  CHECK(parse(text, strlen(text), SCORE, &e, &err) == FA_ERR_INPUT &&
        strstr(err.text, "more than 4096 operations"));
}

/* Twice the text takes at most about twice the time. Limits reject a megabyte at once; below them, only
 * names, blanks and numbers can be long. */
static void test_linear(void) {
  enum { BIG = 1 << 20 };
  char *text = malloc(BIG);
  fa_expr e;
  fa_error err;
  REQUIRE(text);
  const clock_t start = clock();
  for (int c = 1; c < 256; ++c) {
    memset(text, c, BIG);
    CHECK(parse(text, BIG, SCORE, &e, &err) == FA_ERR_INPUT);
    CHECK(parse(text, FA_EXPR_MAX_BYTES, SCORE, &e, &err) == FA_ERR_INPUT);
  }
  CHECK((double)(clock() - start) / CLOCKS_PER_SEC < 5);
  free(text);
}

/* Random tokens, and truncated or changed texts: accepted or rejected; what is accepted is printed and parsed
 * again. */
static void test_random(void) {
  static const char *const words[] = {
      "score",    "b",     "h",    "q_idx",  "kv_idx", "seqlen_k",  "slopes[",  "table[",
      "doc[",     "]",     ",",    "(",      ")",      "+",         "-",        "*",
      "/",        "%",     "<",    "<=",     "==",     "!=",        "&&",       "||",
      "!",        "?",     ":",    "tanh(",  "min(",   "abs(",      "1",        "0.5",
      "1e9",      "one",   "true", "inf",    "$",      "\xff",      " ",        "floor(",
      "&",        "|",     "^",    "~",      "<<",     ">>",        "pow(",     "erf(",
      "sigmoid(", "ceil(", "int(", "float(", "where(", "floordiv(", "floormod("};
  fa_rng r = fa_rng_make(11, 0);
  int64_t n_read = 0;
  for (int round = 0; round < 200000; ++round) {
    char text[256] = "";
    const int n = 1 + (int)fa_rng_below(&r, 12);
    for (int i = 0; i < n; ++i) strcat(text, words[fa_rng_below(&r, sizeof words / sizeof *words)]);
    const fa_expr_kind kind = round & 1 ? MASK : SCORE;
    fa_expr e, again;
    fa_error err = {""};
    if (parse(text, strlen(text), kind, &e, &err) != FA_OK) {
      CHECK_MSG(strstr(err.text, "column ") == err.text && strchr(err.text, '^'), "%s: %s", text, err.text);
      continue;
    }
    ++n_read;
    char *printed = fa_expr_print(&e, captures);
    REQUIRE(printed);
    CHECK_MSG(parse(printed, strlen(printed), kind, &again, &err) == FA_OK, "%s: %s", text, err.text);
    CHECK_MSG(fa_expr_equal(&e, &again), "%s is printed as %s", text, printed);
    fa_expr_free(&e);
    fa_expr_free(&again);
    free(printed);
  }
  CHECK_MSG(n_read > 3000, "%lld", (long long)n_read);
}

int main(void) {
  test_reads();
  test_reads_more();
  test_precedence();
  test_refuses();
  test_like();
  test_caret();
  test_limits();
  test_nodes();
  test_linear();
  test_random();
  return check_done();
}
