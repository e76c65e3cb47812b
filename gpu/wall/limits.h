/* How much of the machine a candidate may use: limits of every process, and of all of them together where a control group
 * can be made. */
#ifndef FA_GPU_WALL_LIMITS_H
#define FA_GPU_WALL_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { FA_WALL_FILES = 4096 };
#define FA_WALL_FILE_BYTES ((size_t)4 << 30)

/* Bytes that all its processes may have together, unless the judge says something else: half of the machine's memory. */
size_t fa_wall_memory_bytes(void);
/* The least that it can be given: an interpreter needs so much to say hello. */
#define FA_WALL_LEAST_MEMORY ((size_t)64 << 20)

/* Processes and threads that it may have together: 512, or eight a processor. */
int fa_wall_processes(void);

/* Limits this process and what it starts. address_space: bytes; 0 = not limited, as a GPU needs it. False: one was
 * refused; why names it. */
bool fa_wall_limit(size_t address_space, char *why, size_t size);

/* ---- a control group ---- */

enum { FA_CGROUP_FOLDERS = 3 }; /* version 1 has one for every kind of limit */

/* Zeroed: there is none. */
typedef struct fa_wall_cgroup {
  int version; /* 0, 1, 2 */
  int n;
  int freezer; /* how many folders stand before the one that can be frozen; n: there is none */
  size_t memory_bytes;
  char folder[FA_CGROUP_FOLDERS][400];
} fa_wall_cgroup;

/* Makes a group below that of this process, limited to so much memory. False: none can be made here; why says why. */
bool fa_wall_cgroup_make(fa_wall_cgroup *g, size_t memory_bytes, char *why, size_t size);
/* Moves this process into the group. */
bool fa_wall_cgroup_enter(const fa_wall_cgroup *g);
/* Stops everything that is in it, at once and whatever it starts meanwhile, or lets it go on. False: there is no such
 * group, or it has not come to rest within a second. */
bool fa_wall_cgroup_freeze(const fa_wall_cgroup *g, bool frozen);
/* True if one of its processes was killed because the memory was used up. */
bool fa_wall_cgroup_ran_out(const fa_wall_cgroup *g);
/* Kills whatever is in it, waits until it is empty, at most two seconds, and removes it. False: something is left. */
bool fa_wall_cgroup_remove(const fa_wall_cgroup *g);

/* What limits it, for people. address_space: of each process, where there is no group; 0 = not limited. */
void fa_wall_limits_text(const fa_wall_cgroup *g, size_t address_space, const char *why_none, char *out,
                         size_t size);
/* "512 MiB". */
void fa_wall_bytes_text(size_t bytes, char *out, size_t size);

#endif
