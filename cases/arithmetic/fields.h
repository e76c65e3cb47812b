/* How a kernel computes, said field by field. A named set gives every field a value, single fields are changed
 * on top of it, and fa_arithmetic_profile turns the whole into the constants that the bounds need
 * (cases/arithmetic/profile.h). Meanings and sources: docs/reference/arithmetic.md. */
#ifndef FA_CASES_ARITHMETIC_FIELDS_H
#define FA_CASES_ARITHMETIC_FIELDS_H

#include "cases/arithmetic/formats.h"
#include "cases/arithmetic/profile.h"
#include "cases/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fa_arithmetic {
  const char *name;                 /* of the set that it began as; static */
  fa_format operand[FA_N_PRODUCTS]; /* what operands that come from memory are rounded to; IO: not at all */
  fa_rounding operand_rounding;
  /* Queries are multiplied by the scale before their product: both are rounded to the element type. */
  bool q_scaled;
  fa_accumulator accumulator[FA_N_PRODUCTS];
  int mma_block, mma_extra_bits;
  fa_format scores; /* S after the product and after every step to the softmax; F32: not rounded */
  fa_format p, ds;  /* P and dS as operands; F32: not rounded */
  fa_format dp;     /* dP as dS is formed of it; F32: not rounded */
  fa_rounding p_rounding, ds_rounding;
  fa_format partials;   /* of the parts of O that splits leave; F32: not rounded */
  double p_scale;       /* P is multiplied by it before it is rounded: 1, 256, 448 */
  int accumulator_keys; /* keys whose products with P one narrow accumulator adds up, before f32 does; 0: all */
  fa_format k_descaled,
      v_descaled;       /* operands of 8 bits times their descales, before products; IO: not multiplied */
  bool o_descaled_late; /* O is rounded to 16 bits, multiplied by V's descale, and rounded again */
  fa_delta_source delta;
  bool p_kept;    /* the backward uses the forward's P; otherwise exp(x - LSE), of the LSE that it returned */
  bool p_in_ds;   /* the P in dS = P (dP - delta) is the rounded one */
  bool ds_scaled; /* dS is multiplied by the scale before it is rounded, not dQ and dK at the end */
  bool delta_rounded;   /* the products dO O, and their sum, are rounded to the element type */
  bool dropout_rounded; /* dropout's factor and its product with P are rounded as P is */
  bool max_lags;        /* the running maximum may lag behind, so that a row's largest P is not 1 */
  bool exp_scaled;      /* exp2(x s - m s), s = scale log2(e), by one fma */
  double eps_exp, eps_log, eps_tanh; /* relative; of the logarithm: absolute */
  bool fast_functions;
  bool library_products; /* a library's, which takes other ways for other sizes, places and threads */
  int block_n, block_m, max_splits;
  bool gqa_partials_rounded, dq_atomic, dkv_atomic, dbias_atomic, dbuffer_atomic, dsinks_atomic;
} fa_arithmetic;

/* Sets every field as the named set has it for this element type. False: no such set. */
bool fa_arithmetic_named(const char *name, fa_dtype dtype, fa_arithmetic *out);
const char *fa_arithmetic_name(int i); /* the i-th set's name; NULL: there are no more */
const char *fa_arithmetic_what(int i); /* what it is of, in one line */

/* Changes one field by its key, as a hello's "arithmetic" has it: "p", "operand_qk", "delta", "block_n" ... A word, a
 * number or a flag, whichever the field takes. FA_ERR_INPUT names the key and what it may be. */
typedef struct fa_arithmetic_value {
  const char *word; /* NULL: not a word */
  bool is_number, is_flag, flag;
  double number;
} fa_arithmetic_value;
fa_status fa_arithmetic_set(fa_arithmetic *a, const char *key, const fa_arithmetic_value *value,
                            fa_error *err);
/* Every key with its value as text, for printing: i from 0; false: no more. A word or number without quotes. Each
 * key appears once; "operand" and "accumulator", which set all six products at once, do not. */
bool fa_arithmetic_get(const fa_arithmetic *a, int i, const char **key, char *value, size_t size);

/* The bounds' constants for problems of this element type. */
fa_profile fa_arithmetic_profile(const fa_arithmetic *a, fa_dtype dtype);
/* What descales add for operands of 8 bits: of queries too or of keys and values alone; per_key: keys have descales of their
 * own, which P is multiplied by unless V is. dtype: the outputs'. */
void fa_arithmetic_add_descales(const fa_arithmetic *a, fa_dtype dtype, bool queries, bool per_key,
                                fa_profile *out);

#ifdef __cplusplus
}
#endif

#endif
