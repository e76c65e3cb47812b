/* What a candidate sees of the file system: the system's programs and libraries, the interpreter and the files that its
 * command names, and what --allow adds. Nothing else exists for it, and nothing that it writes is kept. */
#ifndef FA_GPU_WALL_VIEW_H
#define FA_GPU_WALL_VIEW_H

#include "cases/base/status.h"
#include "gpu/wall/terms.h"
#include "gpu/wall/words.h"

#include <limits.h>

typedef struct fa_wall_view {
  char folder[PATH_MAX]; /* in which the command runs: a name only, the folder is empty */
  char home[PATH_MAX];   /* real paths of what is never shown whole */
  char judge[PATH_MAX];  /* this program */
  fa_wall_words shown;   /* absolute paths that are bound, read-only, beside the system's */
  fa_wall_words hidden;  /* absolute paths that lie in what is shown: the judge's, and what --hide names */
} fa_wall_view;

/* FA_ERR_INPUT: what --allow names is not there, or may not be shown; what --hide names is not shown. */
fa_status fa_wall_view_make(const fa_wall_terms *terms, const char *command, fa_wall_view *out,
                            fa_error *err);
void fa_wall_view_free(fa_wall_view *view);

/* True if the candidate sees what lies at this absolute path. */
bool fa_wall_sees(const fa_wall_view *view, const char *path);
/* True if a part of the path is . or .., which bubblewrap cannot make. */
bool fa_wall_has_dots(const char *path);
/* Shows the absolute path; false: it holds the home folder, the current folder or this program. */
bool fa_wall_show(fa_wall_view *view, const char *path);
/* Shows a program, and if it is that of a Python, the folders that it needs. */
void fa_wall_show_program(fa_wall_view *view, const char *path);

/* Appends the arguments by which bubblewrap builds this view. host_processes: with the machine's own /proc. exchange: NULL,
 * or a folder that may be written. */
void fa_wall_view_arguments(const fa_wall_view *view, bool host_processes, const char *exchange,
                            fa_wall_words *to);

/* Bytes that a candidate may keep in /tmp, and as many in /dev/shm. */
#define FA_WALL_SCRATCH_BYTES ((size_t)1 << 30)

#endif
