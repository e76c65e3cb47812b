#include "report/merge/pretty.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 60 };

/* ---- numbers ---- */

/* "-12.5e-07" as sign, the digits without a point, and their exponent. */
typedef struct decimal {
  uint64_t digits;
  int n;                       /* how many digits are counted, from the first that is not 0 */
  int exponent;                /* the value is digits * 10^exponent */
  int before, zeros;           /* digits before the point; zeros right behind it */
  bool point, fraction, power; /* fraction: there is a digit behind the point */
  char first, last;            /* digits */
} decimal;

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* "e-07": the only powers that occur are small ones of two digits. */
static bool read_power(const char *s, const char *end, decimal *d) {
  if (end - s != 4 || s[0] != 'e' || s[1] != '-' || !is_digit(s[2]) || !is_digit(s[3])) return false;
  const int power = 10 * (s[2] - '0') + s[3] - '0';
  d->power = true;
  d->exponent -= power;
  return power >= 5; /* larger numbers are written without one */
}

static bool read_decimal(const char *s, const char *end, decimal *d) {
  *d = (decimal){0};
  for (; s < end && *s != 'e'; ++s) {
    if (*s == '.' && !d->point && d->before > 0) {
      d->point = true;
      continue;
    }
    if (!is_digit(*s) || d->n == 18) return false;
    d->digits = 10 * d->digits + (uint64_t)(*s - '0');
    if (!d->before) d->first = *s;
    d->n += d->digits != 0;
    d->before += !d->point;
    d->exponent -= d->point;
    d->fraction |= d->point;
    d->zeros += d->point && d->digits == 0;
    d->last = *s;
  }
  return d->before > 0 && (s == end || read_power(s, end, d));
}

/* The form that %.17g gives: no superfluous zeros, a power for less than 0.0001 and only there. */
static bool has_form_of_17g(const decimal *d) {
  if (d->n == 0 || d->n > 17 || !d->fraction || d->last == '0') return false;
  if (d->power) return d->before == 1 && d->first != '0';
  return (d->first != '0' && d->before <= 15) || (d->before == 1 && d->zeros <= 3);
}

#if LDBL_MANT_DIG >= 64
/* The largest one that is not above x > 0. */
static double power_of_two(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  bits &= UINT64_C(0x7ff) << 52;
  memcpy(&x, &bits, sizeof x);
  return x;
}
#endif

/* True if the digits are those that %.17g gives for the double nearest to them. A long double has room for 17 digits,
 * and all that is done with it here is exact to a hundredth of the last digit; where that does not decide, the answer
 * is no. */
static bool is_rounded(const decimal *d) {
#if LDBL_MANT_DIG >= 64
  static const long double ten[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                    1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                    1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
  const int shift = 17 - d->n, exponent = shift - d->exponent; /* 17 digits: digits * 10^shift */
  if (exponent < 0 || exponent > 27) return false;
  const long double wide = (long double)d->digits * ten[shift], exact = wide / ten[exponent];
  const double x = (double)exact;
  const long double tie = exact - (long double)x, half = (long double)power_of_two(x) * 0x1p-53L;
  /* Near the middle between two doubles the division's own rounding might choose the other. */
  if ((tie < 0 ? -tie : tie) > 0.99L * half) return false;
  const long double off = (long double)x * ten[exponent] - wide;
  return off > -0.49L && off < 0.49L;
#else
  (void)d;
  return false;
#endif
}

bool fa_pretty_number(const char *s, size_t n) {
  decimal d;
  const char *end = s + n;
  const bool negative = n > 0 && *s == '-';
  if (!read_decimal(s + negative, end, &d)) return false;
  if (!d.point && !d.power)
    return d.before <= 15 && (d.before == 1 || d.first != '0') && !(negative && d.digits == 0);
  return has_form_of_17g(&d) && is_rounded(&d);
}

/* The same number with the digits that it needs; how many characters, 0: cJSON must do it. */
static int print_number(const char *s, size_t n, char *out, size_t size) {
  char copy[40], *end;
  if (n >= sizeof copy || *s == '+' || *s == '.') return 0;
  memcpy(copy, s, n);
  copy[n] = 0;
  const double x = strtod(copy, &end);
  const bool is_whole = x == floor(x) && fabs(x) < 1e15; /* cJSON has its own way to write these */
  return *end || !isfinite(x) || is_whole ? 0 : snprintf(out, size, "%.17g", x);
}

/* ---- text ---- */

void fa_text_free(fa_text *out) {
  free(out->v);
  *out = (fa_text){0};
}

static bool make_room(fa_text *out, size_t n) {
  if (out->n + n <= out->capacity) return true;
  const size_t capacity = 2 * (out->n + n) + 4096;
  char *more = realloc(out->v, capacity);
  out->failed |= !more;
  if (!more) return false;
  out->v = more;
  out->capacity = capacity;
  return true;
}

void fa_text_add(fa_text *out, const char *v, size_t n) {
  if (n == 0 || !make_room(out, n)) return; /* nothing may be copied to nowhere */
  memcpy(out->v + out->n, v, n);
  out->n += n;
}

static void add_tabs(fa_text *out, int n) {
  static const char tabs[] = "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"
                             "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t";
  fa_text_add(out, tabs, (size_t)n);
}

/* ---- values ---- */

typedef struct reading {
  const char *at, *end;
  fa_text *out;
  bool zero_times;
} reading;

static char peek(reading *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) ++r->at;
  return r->at < r->end ? *r->at : 0;
}

static bool take(reading *r, char c) {
  if (peek(r) != c) return false;
  ++r->at;
  return true;
}

/* Copies text between quotes as it is: nothing in it is escaped or has to be. */
static bool plain_string(reading *r, const char **start, size_t *n) {
  if (peek(r) != '"') return false;
  *start = r->at++;
  while (r->at < r->end && *r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 32) ++r->at;
  if (r->at == r->end || *r->at != '"') return false;
  *n = (size_t)(++r->at - *start);
  return true;
}

static bool put_word(reading *r, const char *word) {
  const size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0) return false;
  fa_text_add(r->out, word, n);
  r->at += n;
  return true;
}

static bool put_number(fa_text *out, const char *s, size_t n, bool zero) {
  char again[40];
  if (n == 0) return false;
  const bool as_is = zero || fa_pretty_number(s, n);
  const int printed = as_is ? 0 : print_number(s, n, again, sizeof again);
  fa_text_add(out, zero ? "0" : as_is ? s : again, zero ? 1 : as_is ? n : (size_t)printed);
  return as_is || printed > 0;
}

/* What is plain is copied. */
static bool put_scalar(reading *r, bool zero) {
  const char *start;
  size_t n;
  const char c = peek(r);
  if (c == 't' || c == 'f' || c == 'n') return put_word(r, c == 't' ? "true" : c == 'f' ? "false" : "null");
  if (c == '"') {
    if (!plain_string(r, &start, &n)) return false;
    fa_text_add(r->out, start, n);
    return true;
  }
  for (start = r->at; r->at < r->end && (is_digit(*r->at) || strchr("+-.eE", *r->at)); ++r->at) continue;
  return put_number(r->out, start, (size_t)(r->at - start), zero);
}

static bool put_value(reading *r, int depth, bool zero);

static bool is_key(const char *key, size_t n, const char *name) {
  return n == strlen(name) + 2 && memcmp(key + 1, name, n - 2) == 0;
}

/* "seconds", "seconds_subject": what fa_report_zero_times sets to 0. */
static bool is_time(const char *key, size_t n) {
  static const char begin[] = "\"seconds";
  return n > sizeof begin - 1 && memcmp(key, begin, sizeof begin - 1) == 0;
}

static bool put_member(reading *r, int depth) {
  const char *key, *ignored;
  size_t n, m;
  add_tabs(r->out, depth);
  if (!plain_string(r, &key, &n) || !take(r, ':')) return false;
  fa_text_add(r->out, key, n);
  fa_text_add(r->out, ":\t", 2);
  const char c = peek(r);
  if (r->zero_times && c == '"' && is_key(key, n, "started")) {
    fa_text_add(r->out, "\"\"", 2);
    return plain_string(r, &ignored, &m);
  }
  return put_value(r, depth, r->zero_times && (is_digit(c) || c == '-') && is_time(key, n));
}

static bool put_object(reading *r, int depth) {
  fa_text_add(r->out, "{\n", 2);
  for (bool more = peek(r) != '}'; more;) {
    if (!put_member(r, depth + 1)) return false;
    more = take(r, ',');
    fa_text_add(r->out, more ? ",\n" : "\n", more ? 2 : 1);
  }
  add_tabs(r->out, depth);
  fa_text_add(r->out, "}", 1);
  return take(r, '}');
}

static bool put_array(reading *r, int depth) {
  fa_text_add(r->out, "[", 1);
  for (bool more = peek(r) != ']'; more;) {
    if (!put_value(r, depth + 1, false)) return false;
    more = take(r, ',');
    if (more) fa_text_add(r->out, ", ", 2);
  }
  fa_text_add(r->out, "]", 1);
  return take(r, ']');
}

static bool put_value(reading *r, int depth, bool zero) {
  if (depth > DEEPEST) return false;
  if (take(r, '{')) return put_object(r, depth);
  if (take(r, '[')) return put_array(r, depth);
  return put_scalar(r, zero);
}

bool fa_pretty(fa_text *out, const char *json, size_t n, int depth, bool zero_times) {
  reading r = {json, json + n, out, zero_times};
  return put_value(&r, depth, false) && !peek(&r) && !out->failed;
}
