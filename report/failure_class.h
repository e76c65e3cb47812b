/* The kind of a failure without its numbers: what stays the same while a case shrinks. */
#ifndef FA_REPORT_FAILURE_CLASS_H
#define FA_REPORT_FAILURE_CLASS_H

#include "report/result.h"

struct cJSON;

typedef enum fa_failure_kind {
  FA_KIND_NONE,      /* the state says everything */
  FA_KIND_CLASS,     /* NaN or infinity in the wrong place, or missing */
  FA_KIND_BOUND,     /* an element outside its bound */
  FA_KIND_STATISTIC, /* every element within its bound, but the errors together suspicious */
  FA_KIND_LAW,       /* an element breaks the case's law */
  FA_KIND_VACUOUS    /* the bound would accept a trivially wrong answer */
} fa_failure_kind;

typedef struct fa_failure_class {
  fa_state state;
  fa_tensor_id tensor; /* the first output that is wrong: an error in O makes its gradients wrong too;
                          FA_T_COUNT: none is named */
  fa_failure_kind kind;
  fa_law law;      /* that the tensor breaks; FA_LAW_NONE if no law judged it */
  char signal[24]; /* that killed the process: "SIGSEGV"; "" otherwise */
} fa_failure_class;

fa_failure_class fa_failure_class_of(const fa_result *r);
/* Every output that the failure names, as bits 1 << fa_tensor_id; 0: none. */
fa_tensor_bits fa_failure_tensors(const fa_result *r);
/* From an entry of a report's "failures". False: the entry lacks data, or another program made it. */
bool fa_failure_class_from_json(const struct cJSON *failure, fa_failure_class *out);
bool fa_failure_class_equal(const fa_failure_class *a, const fa_failure_class *b);
/* "FAIL: dq outside its bound" */
void fa_failure_class_text(const fa_failure_class *c, char *text, size_t size);

#endif
