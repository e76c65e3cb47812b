/* The process between a child and us (process.h): it starts the child, waits for its end, and leaves nothing of it behind. */
#ifndef FA_GPU_CHILD_SUPERVISOR_H
#define FA_GPU_CHILD_SUPERVISOR_H

struct fa_wall;

/* What the two processes on this side of the child share: pairs of descriptors, [0] ours and [1] the child's. */
typedef struct fa_station {
  const char *command, *folder, *name;
  const struct fa_wall *wall; /* NULL: it is trusted */
  int server;                 /* of forks.h, which is asked for the child first; -1: there is none */
  int memory;                 /* the region; -1: it opens it by its path */
  int down[2], up[2];         /* its stdin and stdout */
  int life[2];                /* ours, the supervisor's */
  int err[2];                 /* its stderr, read by the supervisor; -1: passed through */
  int report[2];              /* what the door says; -1: there is no door */
} fa_station;

/* What the supervisor says on the lifeline before it ends, if there is something to say: its child wanted more memory than its limit. */
#define FA_RAN_OUT "m"

/* In a process of its own, whose ends of the pairs are the only ones that it has; it ends as the child does. */
_Noreturn void fa_supervise(const fa_station *s);

#endif
