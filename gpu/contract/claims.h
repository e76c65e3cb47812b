/* What a hello claims, as a report says it: word by word, and beside it what the hello leaves out. */
#ifndef FA_GPU_CONTRACT_CLAIMS_H
#define FA_GPU_CONTRACT_CLAIMS_H

#include "gpu/contract/hello.h"

#ifdef __cplusplus
extern "C" {
#endif

/* {"name": "...", "claims": {"families": ["flash"], "dtypes": [...], "features": [...], "passes": [...],
 *  "outputs": [...], "limits": {"head_dim": {"max": 128}}, "arithmetic": {"f16": "flash"}},
 *  "not_claimed": {"families": [...], ...}, "asks": true}
 * Lists have every word, in the order of its table, so that the same hello gives the same text. A limit is in "claims"
 * alone. "arithmetic" has the element types that it takes; "?" where it does not say. "asks": it decides about each call
 * anew, within these words. The caller owns the tree; NULL: out of memory. */
struct cJSON *fa_hello_claims(const fa_hello *h);

#ifdef __cplusplus
}
#endif

#endif
