/* Right outputs, spoilt by chance: FA_PLANTED=corrupt:KIND:SEED. */
#ifndef FA_TESTS_EXPLAIN_PLANTED_CORRUPT_H
#define FA_TESTS_EXPLAIN_PLANTED_CORRUPT_H

#include "gpu/plugin.h"

#include <stdbool.h>

typedef struct pl_corruption {
  int kind; /* -1: none */
  uint64_t seed;
} pl_corruption;

/* text: FA_PLANTED, or NULL. *out says none unless it begins with "corrupt:". False: no such kind, in message. */
bool pl_corruption_read(const char *text, pl_corruption *out, char *message, size_t size);

/* Changes elements of one output, chosen like them by the seed and the sizes of the problem: the same in every run. */
void pl_corrupt(const pl_corruption *c, const fa_plugin_problem *p, const fa_plugin_tensors *t,
                bool backward);

#endif
