/* Lists of keys (cases/vocabulary/topk.h) of a call. Keys are numbers within their sequence. */
#ifndef FA_REF_ENGINE_TOPK_H
#define FA_REF_ENGINE_TOPK_H

#include "ref/engine/call.h"

typedef struct fa_ref_topk {
  int32_t *key;    /* [row over all sequences][k]; -1: none */
  int32_t *most;   /* [row]: how often it names one key at most, 1 where it names none */
  uint8_t *listed; /* [batch][stride]: some row of the sequence names the key. The others are NaN. */
  int64_t stride;
} fa_ref_topk;

/* Reads the lists of a call that has some; after its sequences are known. */
fa_status fa_ref_topk_init(fa_ref_call *c, fa_error *err);
void fa_ref_topk_free(fa_ref_call *c);

/* The list of row i: p->topk.k entries. */
const int32_t *fa_ref_topk_list(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i);
/* 1 in calls without lists. */
int64_t fa_ref_topk_most(const fa_ref_call *c, const fa_ref_sequence *e, int64_t i);
/* true in calls without lists. */
bool fa_ref_topk_is_listed(const fa_ref_call *c, const fa_ref_sequence *e, int64_t j);

#endif
