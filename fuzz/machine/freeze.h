/* Stops a process and all that it has started, and lets them go on. */
#ifndef FA_FUZZ_MACHINE_FREEZE_H
#define FA_FUZZ_MACHINE_FREEZE_H

#include <stdbool.h>
#include <sys/types.h>

/* Every descendant of the process gets SIGSTOP, or SIGCONT; the process itself, which is ours, does not. How many there were. */
int fa_freeze_children(pid_t of, bool stop);

#endif
