/* A hypothesis: a mistake that kernels make, in the terms of the reference.
 *
 * To add one: a function that makes the mistake, in the file of its theme in hypotheses/, and a row in that file's table. The order of
 * the tables is the order of plausibility: it decides which of two that explain equally well is named first. */
#ifndef FA_FUZZ_EXPLAIN_HYPOTHESIS_H
#define FA_FUZZ_EXPLAIN_HYPOTHESIS_H

#include "fuzz/explain/failure.h"

#define FA_MISTAKE_OWNS 8
#define LOG2_E 1.4426950408889634

/* One mistake, as the reference computes with it. fa_mistake_init makes it none. */
typedef struct fa_mistake {
  fa_problem p;          /* a shallow copy of the case's: change fields, free nothing */
  fa_tensors in;         /* likewise of the inputs: set other pointers, shapes and strides */
  fa_ref_twist twist;    /* of the reference itself; its parts are the engine's business */
  fa_profile profile;    /* the arithmetic */
  double by[FA_T_COUNT]; /* the output is so many times what it should be; 1 */
  /* Instead of computing: which right element an element is. Returns false where there is none. */
  bool (*moved)(const struct fa_mistake *m, const fa_failure *x, const fa_failed *t, fa_place *at);
  int64_t number[3]; /* what it wants to know */
  /* Changes the computed wants of a tensor; rows: the elements that are looked at are complete rows. NULL: nothing. */
  void (*after)(const struct fa_mistake *m, const fa_failure *x, fa_wants *wants);
  bool expects_nan;  /* a NaN that `after` sets stands for whatever is not finite */
  bool zero;         /* instead of computing: all zeros */
  bool values_only;  /* no bounds are wanted */
  bool end_to_end;   /* gradients: from the right O and LSE, and not from the subject's */
  bool of_precision; /* it rounds something, and is accepted by its own rule (fuzz/explain/accept.h) */
  void *owned[FA_MISTAKE_OWNS]; /* freed with it */
  char text[128];               /* what the kernel did, for people: "window right edge one key short" */
} fa_mistake;

void fa_mistake_init(fa_mistake *m, const fa_failure *x);
void fa_mistake_free(fa_mistake *m);
void fa_mistake_say(fa_mistake *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether two inputs may be taken for each other: both are there, and of one shape. */
bool fa_mistake_fits(const fa_tensor *a, const fa_tensor *b);
/* Zeroed memory that the mistake owns; NULL: out of memory. */
void *fa_mistake_alloc(fa_mistake *m, size_t bytes);
/* Gives the input a copy of its own, row-major; false: out of memory, or there is no such input. */
bool fa_mistake_copy_input(fa_mistake *m, fa_tensor_id id);

/* Elements first .. first + n - 1 of a want, value and bounds (if it has any), so many times as large. */
void fa_want_multiply(fa_want *w, int64_t first, int64_t n, double by);

/* A row of the forward's wants: where its LSE is, and where its O begins. */
typedef struct fa_forward_row {
  const fa_ref_sequence *e;
  int64_t i, lse, o;
} fa_forward_row;
/* For `after`: calls change with every row of the wants of a whole forward. */
void fa_each_forward_row(const fa_mistake *m, const fa_failure *x, fa_wants *w,
                         void (*change)(const fa_mistake *m, const fa_failure *x, const fa_forward_row *row,
                                        fa_wants *w));

typedef struct fa_hypothesis {
  const char *name, *what; /* what the kernel did, as fa-verify list hypotheses prints it */
  fa_tensor_bits tensors;  /* bit 1 << id: those that it may explain */
  int variants;
  /* Makes a mistake, which is none so far, this one. False: this problem has no such variant. */
  bool (*make)(const fa_failure *x, int variant, fa_mistake *m);
} fa_hypothesis;

/* What it may explain, in words: "all", "forward", "gradients", or the tensors' names. */
void fa_hypothesis_tensors(const fa_hypothesis *h, char *text, size_t size);

#define FA_BIT(id) FA_TENSOR_BIT(id)
#define FA_OF_FORWARD (FA_BIT(FA_T_O) | FA_BIT(FA_T_LSE))
#define FA_OF_BACKWARD                                                                                       \
  (FA_BIT(FA_T_DQ) | FA_BIT(FA_T_DK) | FA_BIT(FA_T_DV) | FA_BIT(FA_T_DBIAS) | FA_OF_BUFFERS)
#define FA_OF_BUFFERS (FA_BIT(FA_T_DBUFFER_LAST + 1) - FA_BIT(FA_T_DBUFFER_0))
#define FA_OF_ALL (FA_OF_FORWARD | FA_OF_BACKWARD)

/* The tables, each ended by a row without a name; the list ends with NULL. */
extern const fa_hypothesis *const fa_hypotheses[];
extern const fa_hypothesis fa_hypotheses_of_masks[], fa_hypotheses_of_keys[], fa_hypotheses_of_scales[],
    fa_hypotheses_of_lse[], fa_hypotheses_of_heads[], fa_hypotheses_of_scores[], fa_hypotheses_of_bias[],
    fa_hypotheses_of_dropout[], fa_hypotheses_of_gradients[], fa_hypotheses_of_tiles[],
    fa_hypotheses_of_order[], fa_hypotheses_of_calls[], fa_hypotheses_of_precision[], fa_hypotheses_of_sums[],
    fa_hypotheses_of_chunks[], fa_hypotheses_of_sinks[], fa_hypotheses_of_descales[];

#endif
