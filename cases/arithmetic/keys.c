/* Fields of an arithmetic by key. */
#include "cases/arithmetic/fields.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef const char *(*words_of)(int i);
typedef enum kind { WORD, FLAG, COUNT, REAL } kind;

/* n > 1: as many fields at once, which fa_arithmetic_get leaves out. Numbers from low to high. */
typedef struct field {
  const char *key;
  kind kind;
  words_of words;
  size_t at;
  int n;
  double low, high;
} field;

#define FIELD(name) offsetof(fa_arithmetic, name)
#define AT(name, i) (offsetof(fa_arithmetic, name) + (i) * sizeof(((fa_arithmetic *)NULL)->name[0]))
#define PRODUCT(text, i)                                                                                     \
  {"operand_" text, WORD, fa_format_name, AT(operand, i), 1, 0, 0}, {                                        \
    "accumulator_" text, WORD, fa_accumulator_name, AT(accumulator, i), 1, 0, 0                              \
  }

static const field fields[] = {
    {"operand", WORD, fa_format_name, AT(operand, 0), FA_N_PRODUCTS, 0, 0},
    {"accumulator", WORD, fa_accumulator_name, AT(accumulator, 0), FA_N_PRODUCTS, 0, 0},
    PRODUCT("qk", FA_PRODUCT_QK),
    PRODUCT("pv", FA_PRODUCT_PV),
    PRODUCT("dp", FA_PRODUCT_DP),
    PRODUCT("dv", FA_PRODUCT_DV),
    PRODUCT("dq", FA_PRODUCT_DQ),
    PRODUCT("dk", FA_PRODUCT_DK),
    {"operand_rounding", WORD, fa_rounding_name, FIELD(operand_rounding), 1, 0, 0},
    {"mma_block", COUNT, NULL, FIELD(mma_block), 1, 0, 4096},
    {"mma_extra_bits", COUNT, NULL, FIELD(mma_extra_bits), 1, -16, 64},
    {"q_scaled", FLAG, NULL, FIELD(q_scaled), 1, 0, 0},
    {"scores", WORD, fa_format_name, FIELD(scores), 1, 0, 0},
    {"p", WORD, fa_format_name, FIELD(p), 1, 0, 0},
    {"ds", WORD, fa_format_name, FIELD(ds), 1, 0, 0},
    {"dp", WORD, fa_format_name, FIELD(dp), 1, 0, 0},
    {"partials", WORD, fa_format_name, FIELD(partials), 1, 0, 0},
    {"p_rounding", WORD, fa_rounding_name, FIELD(p_rounding), 1, 0, 0},
    {"ds_rounding", WORD, fa_rounding_name, FIELD(ds_rounding), 1, 0, 0},
    {"p_scale", REAL, NULL, FIELD(p_scale), 1, 0x1p-32, 0x1p32},
    {"accumulator_keys", COUNT, NULL, FIELD(accumulator_keys), 1, 0, INT_MAX},
    {"k_descaled", WORD, fa_format_name, FIELD(k_descaled), 1, 0, 0},
    {"v_descaled", WORD, fa_format_name, FIELD(v_descaled), 1, 0, 0},
    {"o_descaled_late", FLAG, NULL, FIELD(o_descaled_late), 1, 0, 0},
    {"delta", WORD, fa_delta_source_name, FIELD(delta), 1, 0, 0},
    {"p_kept", FLAG, NULL, FIELD(p_kept), 1, 0, 0},
    {"p_in_ds", FLAG, NULL, FIELD(p_in_ds), 1, 0, 0},
    {"ds_scaled", FLAG, NULL, FIELD(ds_scaled), 1, 0, 0},
    {"delta_rounded", FLAG, NULL, FIELD(delta_rounded), 1, 0, 0},
    {"dropout_rounded", FLAG, NULL, FIELD(dropout_rounded), 1, 0, 0},
    {"max_lags", FLAG, NULL, FIELD(max_lags), 1, 0, 0},
    {"exp_scaled", FLAG, NULL, FIELD(exp_scaled), 1, 0, 0},
    {"eps_exp", REAL, NULL, FIELD(eps_exp), 1, 0, 0.25},
    {"eps_log", REAL, NULL, FIELD(eps_log), 1, 0, 0.25},
    {"eps_tanh", REAL, NULL, FIELD(eps_tanh), 1, 0, 0.25},
    {"fast_functions", FLAG, NULL, FIELD(fast_functions), 1, 0, 0},
    {"library_products", FLAG, NULL, FIELD(library_products), 1, 0, 0},
    {"block_n", COUNT, NULL, FIELD(block_n), 1, 1, INT_MAX},
    {"block_m", COUNT, NULL, FIELD(block_m), 1, 1, INT_MAX},
    {"max_splits", COUNT, NULL, FIELD(max_splits), 1, 1, INT_MAX},
    {"gqa_partials_rounded", FLAG, NULL, FIELD(gqa_partials_rounded), 1, 0, 0},
    {"dq_atomic", FLAG, NULL, FIELD(dq_atomic), 1, 0, 0},
    {"dkv_atomic", FLAG, NULL, FIELD(dkv_atomic), 1, 0, 0},
    {"dbias_atomic", FLAG, NULL, FIELD(dbias_atomic), 1, 0, 0},
    {"dbuffer_atomic", FLAG, NULL, FIELD(dbuffer_atomic), 1, 0, 0},
    {"dsinks_atomic", FLAG, NULL, FIELD(dsinks_atomic), 1, 0, 0},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* Every enum of the struct is as wide as an int, so that words are set and read as one. */
_Static_assert(sizeof(fa_format) == sizeof(int) && sizeof(fa_accumulator) == sizeof(int) &&
                   sizeof(fa_rounding) == sizeof(int) && sizeof(fa_delta_source) == sizeof(int),
               "enums are ints");

static fa_status refuse_word(const field *f, const char *word, fa_error *err) {
  char all[200] = "";
  for (int i = 0; f->words(i); ++i) {
    const size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", f->words(i));
  }
  return fa_fail(err, FA_ERR_INPUT, "%s: \"%.40s\" is none of %s", f->key, word ? word : "?", all);
}

static fa_status set_word(const field *f, fa_arithmetic *a, const char *word, fa_error *err) {
  int value = 0;
  while (word && f->words(value) && strcmp(f->words(value), word) != 0) ++value;
  if (!word || !f->words(value)) return refuse_word(f, word, err);
  for (int i = 0; i < f->n; ++i) memcpy((char *)a + f->at + (size_t)i * sizeof value, &value, sizeof value);
  return FA_OK;
}

static fa_status set_number(const field *f, fa_arithmetic *a, const fa_arithmetic_value *value,
                            fa_error *err) {
  const double x = value->number;
  const bool whole = f->kind == REAL || (x >= INT_MIN && x <= INT_MAX && x == (double)(int)x);
  if (!value->is_number || !whole || !(x >= f->low && x <= f->high))
    return fa_fail(err, FA_ERR_INPUT, "%s must be a%s number from %g to %g", f->key,
                   f->kind == REAL ? "" : " whole", f->low, f->high);
  const int count = f->kind == REAL ? 0 : (int)x;
  if (f->kind == REAL)
    memcpy((char *)a + f->at, &x, sizeof x);
  else
    memcpy((char *)a + f->at, &count, sizeof count);
  return FA_OK;
}

fa_status fa_arithmetic_set(fa_arithmetic *a, const char *key, const fa_arithmetic_value *value,
                            fa_error *err) {
  const field *f = fields;
  while (f < fields + N_FIELDS && strcmp(f->key, key) != 0) ++f;
  if (f == fields + N_FIELDS)
    return fa_fail(err, FA_ERR_INPUT,
                   "%.40s is no field of an arithmetic (docs/reference/arithmetic.md has them)", key);
  if (f->kind == WORD) return set_word(f, a, value->word, err);
  if (f->kind != FLAG) return set_number(f, a, value, err);
  if (!value->is_flag) return fa_fail(err, FA_ERR_INPUT, "%s must be true or false", f->key);
  memcpy((char *)a + f->at, &value->flag, sizeof value->flag);
  return FA_OK;
}

static void print(const field *f, const fa_arithmetic *a, char *value, size_t size) {
  int whole = 0;
  double real = 0;
  bool flag = false;
  const char *from = (const char *)a + f->at;
  if (f->kind == REAL)
    memcpy(&real, from, sizeof real);
  else if (f->kind == FLAG)
    memcpy(&flag, from, sizeof flag);
  else
    memcpy(&whole, from, sizeof whole);
  if (f->kind == WORD)
    snprintf(value, size, "%s", f->words(whole) ? f->words(whole) : "?");
  else if (f->kind == FLAG)
    snprintf(value, size, "%s", flag ? "true" : "false");
  else if (f->kind == REAL)
    snprintf(value, size, "%.17g", real);
  else
    snprintf(value, size, "%d", whole);
}

bool fa_arithmetic_get(const fa_arithmetic *a, int i, const char **key, char *value, size_t size) {
  for (const field *f = fields; f < fields + N_FIELDS; ++f) {
    if (f->n > 1 || i-- != 0) continue;
    *key = f->key;
    print(f, a, value, size);
    return true;
  }
  return false;
}
