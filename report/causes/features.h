/* What may be said of a case to tell failing from passing ones: sentences over its shape, and its words. */
#ifndef FA_REPORT_CAUSES_FEATURES_H
#define FA_REPORT_CAUSES_FEATURES_H

#include "report/causes/shape.h"

#include <stddef.h>

typedef struct fa_cause_feature {
  const char *text;     /* "seqlen_q > seqlen_k" */
  const char *negation; /* "seqlen_q <= seqlen_k"; NULL: nobody would say so */
  int bits;             /* what a predicate pays for it: the more natural, the less */
  bool (*holds)(const fa_shape *s, fa_shape_number of, double n);
  fa_shape_number of; /* what it is about, and a number of the sentence */
  double n;
} fa_cause_feature;

/* The i-th sentence about shapes; NULL behind the last. Where equally good, the earlier one is preferred. */
const fa_cause_feature *fa_cause_feature_at(int i);

typedef struct fa_cause_sentence {
  const char *word, *text, *negation;
} fa_cause_sentence;

/* How to say that a case has a word of "features"; NULL: the word says it. */
const fa_cause_sentence *fa_cause_sentence_of(const char *word);

/* Sequences of one call differ in length, or not all of their keys are used. */
bool fa_cause_is_uneven(const fa_shape *s);
/* How to say a sentence about lengths of such calls: of packed sequences one can have more queries than keys, another
 * fewer. Without such a sentence out is the text itself. */
void fa_cause_say_of_many(const char *text, char *out, size_t size);

/* Sentences that only the cases themselves suggest, such as "head_dim == 96": calls see for each that is true. */
void fa_cause_named_features(const fa_shape *s, void (*see)(void *ctx, const char *text), void *ctx);

#endif
