/* The child of exec:CMD: a shell command that answers lines with lines.
 *
 * It runs under /bin/sh -c in its own process group, with a private folder for files. Between it and us is a
 * supervisor process, which kills the whole group and removes the folder as soon as we end, in whatever way:
 * a worker killed because its case takes too long leaves no process behind. Behind a wall nothing that it has started in
 * whatever way outlives it, and it has no grace once we have ended. */
#ifndef FA_GPU_CHILD_PROCESS_H
#define FA_GPU_CHILD_PROCESS_H

#include "cases/base/status.h"
#include "gpu/child/lines.h"
#include "gpu/wall/limits.h"
#include "gpu/wall/terms.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A zeroed one is not running. */
typedef struct fa_exec_process {
  pid_t supervisor;    /* 0 = not running */
  fa_exec_lines lines; /* the child's stdin and stdout */
  int lifeline;        /* closing tells the supervisor that we died */
  char folder[512];    /* absolute, mode 0700 */
  bool behind_wall;
  fa_wall_cgroup cgroup; /* its processes', which the supervisor removes; zeroed: they have none */
} fa_exec_process;

/* How a child is let in that nobody trusts. */
typedef struct fa_exec_guest {
  const fa_wall_terms *terms;
  const char *name; /* before every line that it prints */
  int memory;       /* the region, for its descriptor FA_WALL_FD_MEMORY */
  char *found;      /* receives what stands around it, for people */
  size_t found_size;
} fa_exec_guest;

/* How long a child may take to end after its stdin was closed. */
#define FA_EXEC_GRACE_SECONDS 3
/* server: of forks.h, which is asked for the child first; -1, or where it has none: the command is run. It is not asked for a guest.
 * The folder is created in $FA_EXEC_DIR, else $TMPDIR, else /tmp. guest: NULL, or the child stands behind a wall, and has
 * come through its door. FA_ERR_INPUT: the folder cannot be created, or a layer of the wall cannot be had. */
fa_status fa_exec_start(fa_exec_process *x, const char *command, int server, const fa_exec_guest *guest,
                        fa_error *err);

/* Stops the child. at_once: kills it; otherwise closes its stdin and waits FA_EXEC_GRACE_SECONDS. how (may be
 * NULL): "ended with status 3", "died of SIGSEGV (Segmentation fault)", and that
 * it was for want of memory. */
void fa_exec_stop(fa_exec_process *x, bool at_once, char *how, size_t how_size);

#ifdef __cplusplus
}
#endif

#endif
