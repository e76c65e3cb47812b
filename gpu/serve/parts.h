/* What the session answers with. */
#ifndef FA_GPU_SERVE_PARTS_H
#define FA_GPU_SERVE_PARTS_H

#include "gpu/backend.h"

struct cJSON;

/* The hello of an open backend. takes: keys newer than version 2 that the judge knows (an array of words, or NULL). */
struct cJSON *fa_serve_hello(const fa_backend *backend, void *self, const struct cJSON *takes);
/* The hello of one that could not be opened. */
struct cJSON *fa_serve_hello_why_not(const char *name, const char *why);

/* A profile in the words of a hello's "arithmetic". A profile may have constants that no word says; it is then
 * described as nearly as words can. */
struct cJSON *fa_serve_arithmetic(const fa_profile *profile, fa_dtype dtype);

/* The backend has said for itself what a hello would. */
bool fa_serve_has_hello(const fa_backend *backend, void *self);

#endif
