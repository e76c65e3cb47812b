/* Stops a process and all that it has started, and lets them go on. */
#ifndef FA_FUZZ_MACHINE_FREEZE_H
#define FA_FUZZ_MACHINE_FREEZE_H

#include <stdbool.h>
#include <sys/types.h>

/* Every descendant of the process gets SIGSTOP, or SIGCONT; the process itself, which is ours, does not. How many there were.
 * Those that are started meanwhile are looked for until there are no more; a chain of processes that each live shorter than a
 * look takes gets away, which a control group alone prevents (fa_wall_cgroup_freeze). */
int fa_freeze_children(pid_t of, bool stop);

#endif
