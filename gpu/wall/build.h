/* The wall around one process of a candidate: what has to be executed, with what arguments and environment, and in which
 * control group. Bubblewrap makes the namespaces and the view of the file system; the door (gpu/wall/door.h) does the rest
 * inside of them, and says whether all of it holds. */
#ifndef FA_GPU_WALL_BUILD_H
#define FA_GPU_WALL_BUILD_H

#include "gpu/wall/door.h"
#include "gpu/wall/limits.h"
#include "gpu/wall/terms.h"
#include "gpu/wall/words.h"

typedef struct fa_wall {
  fa_layer_set layers;
  fa_wall_words arguments, environment; /* of the program that is executed */
  fa_wall_cgroup cgroup;
  int program;    /* this program, open */
  char text[512]; /* what limits it and what it is shown, for people */
} fa_wall;

/* exchange: NULL, or a folder that both sides write, which is shown unless the memory is the only way between them.
 * FA_ERR_INPUT: a layer cannot be had here: which, why, and what helps. Free it. */
fa_status fa_wall_make(const fa_wall_terms *terms, const char *command, const char *exchange, fa_wall *out,
                       fa_error *err);
/* The group is left to whoever waits for the candidate: fa_wall_cgroup_remove. */
void fa_wall_free(fa_wall *w);

/* In a process that was forked for it: takes its descriptors 0 to 5 from fd[] (FA_WALL_FD_PROGRAM is the wall's own) and
 * becomes the candidate, through the door. A negative one is left as it is. */
void fa_wall_enter(const fa_wall *w, const int fd[FA_WALL_N_FDS]) __attribute__((noreturn));

/* Waits for what the door says. FA_ERR_INPUT: a layer does not hold, or the wall could not be built. */
fa_status fa_wall_await(const fa_wall *w, int report, fa_error *err);

#endif
