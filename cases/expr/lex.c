/* Text to tokens, and error messages that show the place in the text. */
#include "cases/expr/parts.h"

#include <float.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_BEFORE = 48, SHOWN_AFTER = 24, LONGEST_NUMBER = 64 };

/* The text around byte `at`, with a caret below. Everything before a failure is ASCII, so bytes are
 * columns. */
static void show(const fa_expr_parser *p, size_t at, char *buffer, size_t size) {
  size_t from = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
  size_t to = p->n_bytes - at > SHOWN_AFTER ? at + SHOWN_AFTER : p->n_bytes;
  const char *before = from > 0 ? "..." : "", *after = to < p->n_bytes ? "..." : "";
  char part[SHOWN_BEFORE + SHOWN_AFTER + 1];
  for (size_t i = from; i < to; ++i)
    part[i - from] = p->text[i] >= 0x20 && p->text[i] < 0x7f ? p->text[i] : '?';
  part[to - from] = 0;
  snprintf(buffer, size, "\n  %s%s%s\n  %*s^", before, part, after, (int)(strlen(before) + at - from), "");
}

int fa_expr_fail(fa_expr_parser *p, size_t at, const char *format, ...) {
  char what[480], where[SHOWN_BEFORE * 2 + SHOWN_AFTER + 32];
  va_list args;
  if (p->status != FA_OK) return -1;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  show(p, at, where, sizeof where);
  p->status = fa_fail(p->err, FA_ERR_INPUT, "column %zu: %s%s", at + 1, what, where);
  return -1;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static size_t skip_digits(const fa_expr_parser *p, size_t at) {
  while (at < p->n_bytes && is_digit(p->text[at])) ++at;
  return at;
}

/* One past the number that begins at `at`; *is_float if it has a point or an exponent. */
static size_t number_end(const fa_expr_parser *p, size_t at, bool *is_float) {
  size_t end = skip_digits(p, at);
  *is_float = end < p->n_bytes && p->text[end] == '.';
  if (*is_float) end = skip_digits(p, end + 1);
  if (end < p->n_bytes && (p->text[end] == 'e' || p->text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < p->n_bytes && (p->text[digits] == '+' || p->text[digits] == '-')) ++digits;
    if (skip_digits(p, digits) == digits) return end; /* the letter is reported as the next token */
    *is_float = true;
    end = skip_digits(p, digits);
  }
  return end;
}

static bool read_number(fa_expr_parser *p, size_t at) {
  fa_token *t = &p->token;
  char digits[LONGEST_NUMBER + 1];
  bool is_float;
  t->length = number_end(p, at, &is_float) - at;
  const size_t end = at + t->length;
  if (t->length > LONGEST_NUMBER)
    return fa_expr_fail(p, at, "a number of %zu characters, at most %d", t->length, LONGEST_NUMBER) >= 0;
  if (end < p->n_bytes && (is_letter(p->text[end]) || p->text[end] == '.'))
    return fa_expr_fail(p, end, "'%c' after a number; numbers are written as 12, 0.5, 1e-3", p->text[end]) >=
           0;
  memcpy(digits, p->text + at, t->length);
  digits[t->length] = 0;
  t->kind = is_float ? FA_TOKEN_FLOAT : FA_TOKEN_INT;
  if (is_float) {
    const double x = strtod(digits, NULL);
    if (!(x < 0x1.ffffffp127)) /* rounds to infinity in f32 */
      return fa_expr_fail(p, at, "larger than the largest f32, 3.4028235e38") >= 0;
    t->value = (double)(float)x;
    if (x > 0 && t->value < FLT_MIN) /* kernels may flush subnormals to 0 */
      return fa_expr_fail(p, at, "below the normal range of f32, which begins at 1.1754944e-38") >= 0;
    return true;
  }
  if (t->length > 1 && digits[0] == '0')
    return fa_expr_fail(p, at, "an integer with a leading 0, which C would read as octal") >= 0;
  const double x = strtod(digits, NULL);
  if (x > INT32_MAX)
    return fa_expr_fail(p, at, "larger than the largest int, 2147483647; with a point it is a float") >= 0;
  t->value = x;
  return true;
}

/* Longest first. */
static const char *const signs[] = {"<=", ">=", "==", "!=", "&&", "||", "<<", ">>", "+",
                                    "-",  "*",  "/",  "%",  "<",  ">",  "!",  "&",  "|",
                                    "^",  "~",  "?",  ":",  "(",  ")",  "[",  "]",  ","};

static bool read_sign(fa_expr_parser *p, size_t at) {
  const size_t left = p->n_bytes - at;
  const unsigned char c = (unsigned char)p->text[at];
  for (size_t i = 0; i < sizeof signs / sizeof *signs; ++i) {
    const size_t n = strlen(signs[i]);
    if (n > left || memcmp(p->text + at, signs[i], n) != 0) continue;
    p->token.kind = FA_TOKEN_SIGN;
    p->token.length = n;
    return true;
  }
  if (c == '=') return fa_expr_fail(p, at, "'=' is no operator here, '==' compares") >= 0;
  if (c < 0x20 || c >= 0x7f)
    return fa_expr_fail(p, at, "byte 0x%02x; names, numbers and operators are ASCII", c) >= 0;
  return fa_expr_fail(
             p, at,
             "'%c' has no meaning here; operators are + - * / %% << >> < <= > >= == != & ^ | ~ && || ! ?:",
             c) >= 0;
}

bool fa_expr_next(fa_expr_parser *p) {
  size_t at = p->next;
  while (at < p->n_bytes && memchr(" \t\r\n", p->text[at], 4)) ++at;
  p->token = (fa_token){.kind = FA_TOKEN_END, .at = at};
  bool good = true;
  if (at < p->n_bytes) {
    const char c = p->text[at];
    if (is_letter(c)) {
      size_t end = at;
      while (end < p->n_bytes && (is_letter(p->text[end]) || is_digit(p->text[end]))) ++end;
      p->token.kind = FA_TOKEN_NAME;
      p->token.length = end - at;
    } else if (is_digit(c) || (c == '.' && at + 1 < p->n_bytes && is_digit(p->text[at + 1]))) {
      good = read_number(p, at);
    } else {
      good = read_sign(p, at);
    }
  }
  p->next = at + p->token.length;
  return good;
}

bool fa_expr_is(const fa_expr_parser *p, const char *text) {
  const fa_token *t = &p->token;
  return (t->kind == FA_TOKEN_SIGN || t->kind == FA_TOKEN_NAME) && t->length == strlen(text) &&
         memcmp(p->text + t->at, text, t->length) == 0;
}
