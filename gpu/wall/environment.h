/* The environment of a candidate: the same few variables for every process and every request, so that it tells nothing
 * about the judge and its state. */
#ifndef FA_GPU_WALL_ENVIRONMENT_H
#define FA_GPU_WALL_ENVIRONMENT_H

#include "gpu/wall/view.h"

/* "NAME=value", for execve. Paths keep only what the candidate sees; view NULL: all of it. */
void fa_wall_environment(const fa_wall_view *view, fa_wall_words *to);
/* The first variable of an environment that is not on the list; NULL: all are. */
const char *fa_wall_foreign_variable(char *const *environment);

#endif
