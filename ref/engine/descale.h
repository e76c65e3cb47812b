/* Operands of 8 bits as values. */
#ifndef FA_REF_ENGINE_DESCALE_H
#define FA_REF_ENGINE_DESCALE_H

#include "ref/engine/call.h"

/* What a query or a key is multiplied by; 1 if it is not of 8 bits. */
double fa_ref_descale_of_query(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i);
double fa_ref_descale_of_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                             int64_t jj);

/* Makes of row[n], a new key or its value, what a call that quantises stores of it; leaves others alone. */
void fa_ref_quantise_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                         int64_t jj, int64_t n, double *row);

/* Multiplies row[n], as it is stored, by its descale; leaves rows of other types alone. The product is exact: 4 or 8 bits
 * times 24. i: the query's row in its sequence; jj: the key's, hidden ones before it counted. */
void fa_ref_descale_query(const fa_ref_call *c, const fa_ref_sequence *e, int64_t h, int64_t i, int64_t n,
                          double *row);
void fa_ref_descale_key(const fa_ref_call *c, fa_tensor_id id, const fa_ref_sequence *e, int64_t hk,
                        int64_t jj, int64_t n, double *row);

#endif
