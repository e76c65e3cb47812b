#include "gpu/wall/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

size_t fa_wall_memory_bytes(void) {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const size_t half = pages > 0 && page > 0 ? (size_t)pages / 2 * (size_t)page : 0;
  return half > (size_t)1 << 30 ? half : (size_t)1 << 30;
}

int fa_wall_processes(void) {
  const long n = 8 * sysconf(_SC_NPROCESSORS_ONLN);
  return n > 512 ? (int)n : 512;
}

bool fa_wall_limit(size_t address_space, char *why, size_t size) {
  const struct {
    const char *name;
    int resource;
    size_t most;
  } limit[] = {
      {"core dumps", RLIMIT_CORE, 0},
      {"file size", RLIMIT_FSIZE, FA_WALL_FILE_BYTES},
      {"open files", RLIMIT_NOFILE, FA_WALL_FILES},
      {"processes", RLIMIT_NPROC, (size_t)fa_wall_processes()},
      {"address space", RLIMIT_AS, address_space},
  };
  for (size_t i = 0; i < sizeof limit / sizeof *limit; ++i) {
    struct rlimit has, now = {.rlim_cur = limit[i].most, .rlim_max = limit[i].most};
    if (limit[i].resource == RLIMIT_AS && address_space == 0) continue;
    if (getrlimit(limit[i].resource, &has) == 0 && has.rlim_max < now.rlim_max)
      continue; /* narrower already */
    if (setrlimit(limit[i].resource, &now) == 0) continue;
    snprintf(why, size, "no limit of %s: %s", limit[i].name, strerror(errno));
    return false;
  }
  return true;
}

void fa_wall_bytes_text(size_t bytes, char *out, size_t size) {
  const double mib = (double)bytes / (1 << 20);
  snprintf(out, size, "%.3g %s", mib < 1000 ? mib : mib / 1024, mib < 1000 ? "MiB" : "GiB");
}

void fa_wall_limits_text(const fa_wall_cgroup *g, size_t address_space, const char *why_none, char *out,
                         size_t size) {
  char bytes[32];
  fa_wall_bytes_text(g->version ? g->memory_bytes : address_space, bytes, sizeof bytes);
  if (g->version)
    snprintf(out, size, "cgroup v%d: %s, %d processes", g->version, bytes, fa_wall_processes());
  else
    snprintf(out, size, "rlimits alone%s%s%s (%s)",
             geteuid() == 0 ? ", which do not bound how many processes root has" : "",
             address_space ? ", for each process an address space of " : "", address_space ? bytes : "",
             why_none);
}
