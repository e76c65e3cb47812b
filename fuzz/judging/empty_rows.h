/* Rows without a visible key. Their O and LSE are what subjects agree about least, so that a contract may say
 * what they are (cases/vocabulary/contract.h); this is what they are then judged by. */
#ifndef FA_FUZZ_JUDGING_EMPTY_ROWS_H
#define FA_FUZZ_JUDGING_EMPTY_ROWS_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/contract.h"
#include "ref/compare/verdict.h"
#include "ref/engine/options.h"

typedef struct fa_empty_rows {
  const fa_problem *p;
  const fa_contract *contract;
  int64_t n;  /* how many there are */
  bool *flag; /* for each element of the LSE, row-major; owned; NULL: none was asked for */
} fa_empty_rows;

/* True if the contract has values of its own for such rows. */
bool fa_contract_has_own_empty_rows(const fa_contract *c);
/* False: every row of the call sees a key, by its position and its sequence's length. Whatever else may hide keys (expressions,
 * biases, lists, bits) is not looked into: true. */
bool fa_empty_rows_are_possible(const fa_problem *p, const fa_tensors *in);

/* Computes the forward as fa_ref_forward does, and finds these rows. The wants are the harness's. */
fa_status fa_empty_rows_forward(const fa_problem *p, const fa_tensors *in, const fa_contract *contract,
                                const fa_ref_options *opt, fa_wants *forward, fa_empty_rows *out,
                                fa_error *err);
void fa_empty_rows_free(fa_empty_rows *rows);

/* Replaces the wants of O and LSE there by what the contract says; NaN, which is not compared, where it says
 * NaN or anything. The harness's values come back with fa_empty_rows_restore. */
fa_status fa_empty_rows_expect(const fa_empty_rows *rows, const fa_tensors *in, const fa_ref_options *opt,
                               fa_wants *forward, fa_error *err);
void fa_empty_rows_restore(const fa_empty_rows *rows, fa_wants *forward);
/* Takes them out of any comparison. */
void fa_empty_rows_hide(const fa_empty_rows *rows, fa_wants *forward);
/* Adds to the verdict on O or LSE the elements there that should be NaN, and are not. */
void fa_empty_rows_check_nan(const fa_empty_rows *rows, const fa_tensor *got, fa_poison poison,
                             fa_verdict *v);

/* The rows of O and LSE there that may hold anything, and so differ from run to run, become those of `from`. */
void fa_empty_rows_equal(const fa_empty_rows *rows, const fa_tensors *from, fa_tensors *to);

/* A copy of the subject's LSE that has the case's own value there, for the reference's backward; contiguous
 * f32. The caller frees its data. */
fa_status fa_empty_rows_plain_lse(const fa_empty_rows *rows, const fa_tensor *lse, fa_tensor *out,
                                  fa_error *err);

#endif
