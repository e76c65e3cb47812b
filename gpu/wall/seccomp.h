/* What a candidate may not ask of the kernel: a filter of system calls, which holds for the process and all its children
 * until they end. */
#ifndef FA_GPU_WALL_SECCOMP_H
#define FA_GPU_WALL_SECCOMP_H

#include <stdbool.h>
#include <stddef.h>

/* Puts the filter over this process, which can never get it off. False: the kernel lacks it, or the program was built for
 * a processor without a table of calls; why says which. */
bool fa_wall_seccomp(char *why, size_t size);
/* Tries some denied calls under the filter. False: one went through; why names it. */
bool fa_wall_seccomp_holds(char *why, size_t size);

#endif
