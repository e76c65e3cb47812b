/* What one run of a case leaves behind, without judging it. */
#ifndef FA_TESTS_MUTATE_IMAGE_H
#define FA_TESTS_MUTATE_IMAGE_H

#include "cases/recipe/case.h"
#include "gpu/backend.h"

#include <stdbool.h>

typedef struct fa_image {
  uint64_t memory;    /* hash of all tensors with their guards; 0: the run did not come to its end */
  fa_outcome outcome; /* of the run; its work is what the run did on the way */
} fa_image;

/* True if the case is a call that the backend can do, rather than a law or something to refuse. */
bool fa_image_applies(const fa_case *c, const fa_backend *backend, void *self);
/* Makes the case's data and runs the subject once. False: the world failed, and *out means nothing. */
bool fa_image_take(const fa_case *c, const fa_backend *backend, void *self, fa_image *out);

#endif
