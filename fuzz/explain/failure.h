/* A failed case as the hypotheses see it: which tensors failed, and which of their elements are wrong. */
#ifndef FA_FUZZ_EXPLAIN_FAILURE_H
#define FA_FUZZ_EXPLAIN_FAILURE_H

#include "fuzz/judging/judge.h"
#include "ref/engine/call.h"

typedef enum fa_element { FA_ELEMENT_SKIPPED, FA_ELEMENT_RIGHT, FA_ELEMENT_WRONG } fa_element;

typedef struct fa_failed {
  fa_tensor_id id;
  const fa_want *right;
  double *got;    /* [n], row-major like the want; owned */
  uint8_t *state; /* [n] fa_element; owned */
  int64_t n, compared, wrong;
  int64_t width; /* of a row: all axes but the last; 1 where an element is a row of its own (LSE) */
} fa_failed;

typedef struct fa_failure {
  const fa_problem *p;
  const fa_tensors *in, *got;
  const fa_judge_config *config;
  const fa_judged *judged;
  const fa_result *result;
  fa_ref_call place; /* the call's geometry, of the right problem */
  int n;
  fa_failed tensor[FA_T_COUNT];
  fa_tensor_bits set; /* bit 1 << id of each that is to be explained */
  fa_tensor_bits
      consequences; /* gradients that are right, but for a backward that starts from a wrong forward */
  double seconds;   /* how long it may take */
  double began, began_here, began_work; /* when it began, on the clocks of fa_failure_left */
} fa_failure;

/* The arguments must outlive it. seconds: from now on. */
fa_status fa_failure_init(fa_failure *x, double seconds, const fa_problem *p, const fa_tensors *in,
                          const fa_tensors *got, const fa_judge_config *config, const fa_judged *judged,
                          const fa_result *r, fa_error *err);
void fa_failure_free(fa_failure *x);
const fa_failed *fa_failure_find(const fa_failure *x, fa_tensor_id id); /* NULL: it has not failed */
/* Seconds that are left, of the processor's time and not of the clock on the wall, so that what is found does not depend
 * on what else the machine does. By the clock it takes at most ten times as long. */
double fa_failure_left(const fa_failure *x);
bool fa_failure_in_time(const fa_failure *x);

/* Whether the element lies where the want says, as the judge has it; one whose want is NaN does not. */
bool fa_element_is_within(const fa_want *w, int64_t e, double got);

/* ---- the place of an element, for tensors of rows and keys: O, LSE, dQ; dK, dV ---- */

typedef struct fa_place {
  int64_t b, h, i, d; /* h, i: a query head and row, or a key/value head and key; from a sequence's first */
} fa_place;

bool fa_tensor_is_of_keys(fa_tensor_id id); /* dK, dV */
bool fa_tensor_has_places(fa_tensor_id id);
/* False: the element is in no sequence. */
bool fa_place_of(const fa_failure *x, const fa_failed *t, int64_t e, fa_place *out);
/* -1: there is no such element. */
int64_t fa_element_at(const fa_failure *x, const fa_failed *t, const fa_place *at);
/* Rows or keys of sequence b, and heads. */
int64_t fa_places_long(const fa_failure *x, const fa_failed *t, int64_t b);
int64_t fa_places_heads(const fa_failure *x, const fa_failed *t);

#endif
