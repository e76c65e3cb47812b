#include "gpu/wall/door.h"

#include "gpu/wall/environment.h"
#include "gpu/wall/limits.h"
#include "gpu/wall/seccomp.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

static const struct {
  const char *name;
  fa_layer layer;
} namespaces[] = {{"user", FA_LAYER_PROCESSES}, {"pid", FA_LAYER_PROCESSES},    {"ipc", FA_LAYER_PROCESSES},
                  {"uts", FA_LAYER_PROCESSES},  {"cgroup", FA_LAYER_PROCESSES}, {"net", FA_LAYER_NETWORK},
                  {"mnt", FA_LAYER_FILES}};
enum { N_NAMESPACES = sizeof namespaces / sizeof *namespaces };

static unsigned long long namespace_of(int i) {
  char path[64];
  struct stat s;
  snprintf(path, sizeof path, "/proc/self/ns/%s", namespaces[i].name);
  return stat(path, &s) == 0 ? (unsigned long long)s.st_ino : 0;
}

void fa_wall_namespaces_text(char *out, size_t size) {
  size_t used = 0;
  out[0] = 0;
  for (int i = 0; i < N_NAMESPACES && used < size; ++i)
    used += (size_t)snprintf(out + used, size - used, "%s%llu", i ? "," : "", namespace_of(i));
}

/* ---- looking around ---- */

/* What is known to the checks. They write into why what they miss. */
typedef struct door {
  fa_layer_set layers;
  size_t addresses;
  const char *outside; /* the judge's namespaces */
  const char *judge;
  int first_unknown; /* descriptor: none from here on may be open */
  char why[200];
} door;

static bool miss(door *d, const char *what, const char *which) {
  snprintf(d->why, sizeof d->why, "%s%s", what, which);
  return false;
}

static bool own_namespaces(door *d, fa_layer layer) {
  const char *at = d->outside;
  for (int i = 0; i < N_NAMESPACES; ++i, at += strcspn(at, ","), at += *at == ',') {
    const unsigned long long here = namespace_of(i);
    if (namespaces[i].layer == layer && (here == 0 || here == strtoull(at, NULL, 10)))
      return miss(d, "it shares the judge's namespace: ", namespaces[i].name);
  }
  return true;
}

/* Counts what has a number for a name. */
static int n_numbers(const char *folder, int above) {
  DIR *open_folder = opendir(folder);
  int n = 0;
  for (struct dirent *e; open_folder && (e = readdir(open_folder));)
    n += e->d_name[0] >= '0' && e->d_name[0] <= '9' && atoi(e->d_name) > above;
  if (open_folder) closedir(open_folder);
  return open_folder ? n : -1;
}

static bool processes_hold(door *d) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  struct __user_cap_data_struct right[2] = {{0}, {0}};
  if (!own_namespaces(d, FA_LAYER_PROCESSES)) return false;
  const int n = n_numbers("/proc", 0);
  if (n < 1 || n > 2)
    return miss(d, "it sees processes other than itself", ""); /* and bubblewrap, who is number 1 */
  if (syscall(SYS_capget, &header, right) != 0 || right[0].permitted || right[1].permitted)
    return miss(d, "it has capabilities", "");
  if (unshare(CLONE_NEWUSER) == 0) return miss(d, "it may make user namespaces", "");
  return true;
}

static bool network_holds(door *d) {
  struct if_nameindex *all = if_nameindex();
  bool alone = all != NULL;
  for (int i = 0; all && all[i].if_index; ++i) alone &= strcmp(all[i].if_name, "lo") == 0;
  if (all) if_freenameindex(all);
  if (!alone) return miss(d, "it has a network interface beside lo", "");
  return own_namespaces(d, FA_LAYER_NETWORK);
}

static bool small_and_in_memory(const char *folder) {
  struct statvfs s;
  struct stat outer, inner;
  return statvfs(folder, &s) == 0 && s.f_blocks * s.f_frsize <= FA_WALL_SCRATCH_BYTES &&
         stat("/", &outer) == 0 && stat(folder, &inner) == 0 && outer.st_dev != inner.st_dev;
}

static bool files_hold(door *d) {
  static const char *const closed[] = {"/usr",
                                       "/usr/lib",
                                       "/usr/local",
                                       "/",
                                       "/dev",
                                       "/proc/sys/kernel/core_pattern",
                                       "/proc/sys/vm/overcommit_memory",
                                       "/proc/sysrq-trigger",
                                       "/sys"};
  struct stat s;
  if (!own_namespaces(d, FA_LAYER_FILES)) return false;
  for (size_t i = 0; i < sizeof closed / sizeof *closed; ++i) {
    const bool of_kernel = strncmp(closed[i], "/proc", 5) == 0;
    if (of_kernel && !fa_layer_in(d->layers, FA_LAYER_PROCESSES)) continue; /* the machine's /proc */
    if (access(closed[i], W_OK) == 0) return miss(d, "it may write ", closed[i]);
  }
  if (!small_and_in_memory("/tmp") || !small_and_in_memory("/dev/shm"))
    return miss(d, "/tmp or /dev/shm is not its own", "");
  if (stat(d->judge, &s) == 0 && S_ISREG(s.st_mode)) return miss(d, "it sees the judge's program ", d->judge);
  return true;
}

static bool environment_holds(door *d) {
  const char *foreign = fa_wall_foreign_variable(environ);
  char name[64];
  if (!foreign) return true;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(foreign, "="), foreign);
  return miss(d, "it has the variable ", name);
}

static bool seccomp_holds(door *d) {
  return fa_wall_seccomp(d->why, sizeof d->why) && fa_wall_seccomp_holds(d->why, sizeof d->why);
}

static bool limits_hold(door *d) {
  return fa_wall_limit(d->addresses, d->why, sizeof d->why);
}

static bool memory_holds(door *d) {
  const int want = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, has = fcntl(FA_WALL_FD_MEMORY, F_GET_SEALS);
  if (has < 0 || (has & want) != want) return miss(d, "the region is not sealed", "");
  if (n_numbers("/proc/self/fd", d->first_unknown - 1) > 1) /* the folder itself */
    return miss(d, "it holds other files of the judge", "");
  return true;
}

static bool stderr_holds(door *d) {
  struct stat s;
  return (fstat(STDERR_FILENO, &s) == 0 && S_ISFIFO(s.st_mode)) || miss(d, "its stderr is not captured", "");
}

/* In this order: the filter would refuse what other checks try. */
static const struct {
  fa_layer layer;
  bool (*holds)(door *d);
} checks[] = {{FA_LAYER_LIMITS, limits_hold},
              {FA_LAYER_PROCESSES, processes_hold},
              {FA_LAYER_NETWORK, network_holds},
              {FA_LAYER_FILES, files_hold},
              {FA_LAYER_ENVIRONMENT, environment_holds},
              {FA_LAYER_MEMORY, memory_holds},
              {FA_LAYER_STDERR, stderr_holds},
              {FA_LAYER_SECCOMP, seccomp_holds}};

/* ---- the door ---- */

static void pass(door *d, char *command) {
  fa_wall_report report = {.magic = FA_WALL_MAGIC, .fault = -1, .why = ""};
  for (size_t i = 0; i < sizeof checks / sizeof *checks && report.fault < 0; ++i)
    if (fa_layer_in(d->layers, checks[i].layer) && !checks[i].holds(d))
      report.fault = (int32_t)checks[i].layer;
  memcpy(report.why, d->why, sizeof report.why);
  if (write(FA_WALL_FD_REPORT, &report, sizeof report) != (ssize_t)sizeof report || report.fault >= 0)
    _exit(126);
  close(FA_WALL_FD_REPORT);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

void fa_wall_door(int argc, char **argv) {
  if (argc != FA_DOOR_N_ARGUMENTS || strcmp(argv[FA_DOOR_WORD], FA_WALL_DOOR) != 0) return;
  door d = {.layers = (fa_layer_set)strtoul(argv[FA_DOOR_LAYERS], NULL, 10),
            .addresses = (size_t)strtoull(argv[FA_DOOR_ADDRESSES], NULL, 10),
            .outside = argv[FA_DOOR_NAMESPACES],
            .judge = argv[FA_DOOR_JUDGE],
            .first_unknown = FA_WALL_FD_PROGRAM,
            .why = ""};
  fcntl(FA_WALL_FD_REPORT, F_SETFD, FD_CLOEXEC);
  if (strstr(argv[FA_DOOR_COMMAND], FA_WALL_PROGRAM)) ++d.first_unknown;
  if (close_range((unsigned)d.first_unknown, ~0u, 0) != 0)
    for (int fd = d.first_unknown; fd < 65536; ++fd) close(fd);
  pass(&d, argv[FA_DOOR_COMMAND]);
}
