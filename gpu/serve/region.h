/* The memory that the judge shares with the process that serves it. */
#ifndef FA_GPU_SERVE_REGION_H
#define FA_GPU_SERVE_REGION_H

#include "cases/base/status.h"

#include <stddef.h>

/* Zeroed: nothing is mapped. */
typedef struct fa_serve_region {
  char *map;
  size_t bytes;
  char path[256]; /* by which it was mapped */
} fa_serve_region;

/* Maps the file at path, readable and writable, unless it is mapped already. FA_ERR_INPUT: there is no such file, or it
 * has fewer bytes. */
fa_status fa_serve_region_map(fa_serve_region *r, const char *path, size_t bytes, fa_error *err);
void fa_serve_region_unmap(fa_serve_region *r);

#endif
