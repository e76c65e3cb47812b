/* On what terms a candidate that nobody trusts is let in. A backend gets them instead of NULL, which means that it is
 * trusted and stands behind no wall. */
#ifndef FA_GPU_WALL_TERMS_H
#define FA_GPU_WALL_TERMS_H

#include "gpu/wall/layers.h"

typedef struct fa_wall_terms {
  fa_layer_set layers;      /* in force; those of the judge are none of the wall's business */
  const char *const *allow; /* files and folders that it may read beside those that its command names */
  int n_allow;
  const char *const *hide; /* of what it would be shown; a folder is empty then, a file too */
  int n_hide;
  size_t memory_bytes; /* that all its processes may have together; 0: fa_wall_memory_bytes */
} fa_wall_terms;

#endif
