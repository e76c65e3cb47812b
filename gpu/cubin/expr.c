#include "gpu/cubin/expr.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
  OP_CONSTANT,
  OP_NAME,
  OP_NEGATE,
  OP_ADD,
  OP_SUBTRACT,
  OP_MULTIPLY,
  OP_CDIV,
  OP_MIN,
  OP_MAX,
  OP_EQUAL,
  OP_UNEQUAL,
  OP_LESS,
  OP_AT_MOST,
  OP_MORE,
  OP_AT_LEAST
};
enum { MAX_NESTED = 32, MAX_NAME = 48 };

/* ---- reading ---- */

typedef struct reader {
  const char *text, *at;
  fa_size_find find;
  fa_size_expr *out;
  int nested;
  fa_error *err;
} reader;

static fa_status wrong(const reader *r, const char *what) {
  return fa_fail(r->err, FA_ERR_INPUT, "column %d: %s", (int)(r->at - r->text) + 1, what);
}

static void skip_space(reader *r) {
  while (*r->at == ' ') ++r->at;
}

static bool take(reader *r, const char *token) {
  skip_space(r);
  const size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

static fa_status emit(reader *r, int op, int64_t value) {
  if (r->out->n == FA_SIZE_EXPR_STEPS) return wrong(r, "the expression is too long");
  r->out->step[r->out->n++] = (fa_size_step){op, value};
  return FA_OK;
}

static fa_status read_compare(reader *r);
static fa_status read_factor(reader *r);

static fa_status read_number(reader *r) {
  int64_t value = 0;
  for (; isdigit((unsigned char)*r->at); ++r->at)
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *r->at - '0', &value))
      return wrong(r, "the number is too large");
  return emit(r, OP_CONSTANT, value);
}

static fa_status read_call(reader *r, int op) {
  fa_status status = read_compare(r);
  if (status == FA_OK && !take(r, ",")) status = wrong(r, "a comma is expected: cdiv, min and max take two");
  if (status == FA_OK) status = read_compare(r);
  if (status == FA_OK && !take(r, ")")) status = wrong(r, "a closing parenthesis is expected");
  return status == FA_OK ? emit(r, op, 0) : status;
}

/* Dots join the parts of a name: "q.stride.1". */
static fa_status read_name(reader *r) {
  static const struct {
    const char *name;
    int op;
  } functions[] = {{"cdiv", OP_CDIV}, {"min", OP_MIN}, {"max", OP_MAX}};
  char name[MAX_NAME] = "";
  size_t n = 0;
  while (isalnum((unsigned char)r->at[n]) || r->at[n] == '_' || r->at[n] == '.') ++n;
  if (n < sizeof name) memcpy(name, r->at, n);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; ++i)
    if (strcmp(name, functions[i].name) == 0) {
      r->at += n;
      return take(r, "(") ? read_call(r, functions[i].op) : wrong(r, "an opening parenthesis is expected");
    }
  const int found = name[0] ? r->find(name) : -1;
  if (found < 0)
    return fa_fail(r->err, FA_ERR_INPUT, "column %d: there is no name %.*s; docs/reference/cubin.md has them",
                   (int)(r->at - r->text) + 1, (int)(n < MAX_NAME ? n : MAX_NAME), r->at);
  r->at += n;
  return emit(r, OP_NAME, found);
}

static fa_status read_inner(reader *r) {
  if (take(r, "-")) {
    const fa_status status = read_factor(r);
    return status == FA_OK ? emit(r, OP_NEGATE, 0) : status;
  }
  if (take(r, "(")) {
    const fa_status status = read_compare(r);
    if (status != FA_OK) return status;
    return take(r, ")") ? FA_OK : wrong(r, "a closing parenthesis is expected");
  }
  if (isdigit((unsigned char)*r->at)) return read_number(r);
  if (isalpha((unsigned char)*r->at) || *r->at == '_') return read_name(r);
  return wrong(r, "a number, a name or an opening parenthesis is expected");
}

static fa_status read_factor(reader *r) {
  if (++r->nested > MAX_NESTED) return wrong(r, "it is nested too deeply");
  const fa_status status = read_inner(r);
  --r->nested;
  return status;
}

static fa_status read_product(reader *r) {
  fa_status status = read_factor(r);
  while (status == FA_OK && take(r, "*")) {
    status = read_factor(r);
    if (status == FA_OK) status = emit(r, OP_MULTIPLY, 0);
  }
  return status;
}

static fa_status read_sum(reader *r) {
  fa_status status = read_product(r);
  while (status == FA_OK) {
    const int op = take(r, "+") ? OP_ADD : take(r, "-") ? OP_SUBTRACT : -1;
    if (op < 0) break;
    status = read_product(r);
    if (status == FA_OK) status = emit(r, op, 0);
  }
  return status;
}

static fa_status read_compare(reader *r) {
  static const struct {
    const char *token; /* longer ones first */
    int op;
  } signs[] = {{"==", OP_EQUAL},    {"!=", OP_UNEQUAL}, {"<=", OP_AT_MOST},
               {">=", OP_AT_LEAST}, {"<", OP_LESS},     {">", OP_MORE}};
  fa_status status = read_sum(r);
  for (size_t i = 0; status == FA_OK && i < sizeof signs / sizeof *signs; ++i) {
    if (!take(r, signs[i].token)) continue;
    status = read_sum(r);
    return status == FA_OK ? emit(r, signs[i].op, 0) : status;
  }
  return status;
}

fa_status fa_size_parse(const char *text, fa_size_find find, fa_size_expr *out, fa_error *err) {
  reader r = {.text = text, .at = text, .find = find, .out = out, .err = err};
  out->n = 0;
  const fa_status status = read_compare(&r);
  skip_space(&r);
  return status == FA_OK && *r.at ? wrong(&r, "an operator is expected") : status;
}

void fa_size_constant(fa_size_expr *out, int64_t value) {
  out->n = 1;
  out->step[0] = (fa_size_step){OP_CONSTANT, value};
}

/* ---- computing ---- */

/* False: the result does not fit, or there is none. */
static bool apply(int op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
  case OP_ADD:
    return !__builtin_add_overflow(a, b, out);
  case OP_SUBTRACT:
    return !__builtin_sub_overflow(a, b, out);
  case OP_MULTIPLY:
    return !__builtin_mul_overflow(a, b, out);
  case OP_CDIV:
    if (b <= 0) return false;
    return *out = a / b + (a % b > 0), true;
  case OP_MIN:
    return *out = a < b ? a : b, true;
  case OP_MAX:
    return *out = a > b ? a : b, true;
  case OP_EQUAL:
    return *out = a == b, true;
  case OP_UNEQUAL:
    return *out = a != b, true;
  case OP_LESS:
    return *out = a < b, true;
  case OP_AT_MOST:
    return *out = a <= b, true;
  case OP_MORE:
    return *out = a > b, true;
  default:
    return *out = a >= b, true;
  }
}

fa_status fa_size_evaluate(const fa_size_expr *x, fa_size_value value, const void *sizes, int64_t *out,
                           fa_error *err) {
  int64_t stack[FA_SIZE_EXPR_STEPS];
  int n = 0;
  for (int i = 0; i < x->n; ++i) {
    const fa_size_step *s = &x->step[i];
    bool fits = true;
    if (s->op == OP_CONSTANT)
      stack[n++] = s->value;
    else if (s->op == OP_NAME)
      stack[n++] = value(sizes, (int)s->value);
    else if (s->op == OP_NEGATE)
      fits = !__builtin_sub_overflow((int64_t)0, stack[n - 1], &stack[n - 1]);
    else
      fits = apply(s->op, stack[n - 2], stack[n - 1], &stack[n - 2]), --n;
    if (!fits) return fa_fail(err, FA_ERR_INPUT, "a value that does not fit 64 bits, or cdiv by less than 1");
  }
  FA_ASSERT(n == 1);
  *out = stack[0];
  return FA_OK;
}
