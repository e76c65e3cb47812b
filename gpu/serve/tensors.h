/* The tensors of a request, where they lie in the judge's memory. */
#ifndef FA_GPU_SERVE_TENSORS_H
#define FA_GPU_SERVE_TENSORS_H

#include "cases/tensors/set.h"
#include "cases/vocabulary/problem.h"
#include "gpu/serve/region.h"

struct cJSON;

/* Sets *out to the request's "tensors", "buffers" and "dbuffers", which point into the region; names that no call has
 * (block lists by key block) are left out. A buffer is what its tensors cover, from a whole page on, so that it can be
 * copied with the guards around it; tensors that lie among each other (packed qkv) share one. *out owns nothing.
 * FA_ERR_INPUT: an entry is malformed, or does not lie inside the region with its guards. */
fa_status fa_serve_tensors_read(const struct cJSON *request, const fa_problem *p, const fa_serve_region *r,
                                fa_tensors *out, fa_error *err);

#endif
