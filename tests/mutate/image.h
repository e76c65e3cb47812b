/* What one run of a case leaves in memory, as a number: a mutant that leaves the same is not told apart by this run. */
#ifndef FA_TESTS_MUTATE_IMAGE_H
#define FA_TESTS_MUTATE_IMAGE_H

#include "cases/recipe/case.h"
#include "gpu/backend.h"

#include <stdbool.h>

/* True if the case is a call that the backend can do, rather than a law or something to refuse. */
bool fa_image_applies(const fa_case *c, const fa_backend *backend, void *self);
/* Makes the case's data, runs the subject once, and hashes all tensors with their guards. 0: it did not finish, or the
 * world failed. kernels: the names of what ran, `size` bytes. */
uint64_t fa_image(const fa_case *c, const fa_backend *backend, void *self, char *kernels, size_t size);

#endif
