#include "gpu/wall/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EMPTY_WITHIN_MS = 2000, STEP_MS = 5, FROZEN_WITHIN_MS = 1000 };

static bool write_text(const char *folder, const char *file, const char *text) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool wrote = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return wrote;
}

static bool write_number(const char *folder, const char *file, size_t n) {
  char text[32];
  snprintf(text, sizeof text, "%zu", n);
  return write_text(folder, file, text);
}

/* ---- where this process is ---- */

/* True if `word` is among the words of a list with commas. */
static bool lists(const char *list, const char *word) {
  const size_t n = strlen(word);
  for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
    if (strncmp(at, word, n) == 0 && (at[n] == ',' || !at[n])) return true;
  return false;
}

/* Where the hierarchy of a controller is mounted; "" asks for version 2. The last of a line's words are, in this order: a
 * dash, the type, the source, the options. */
static bool mounted_at(const char *controller, char *out, size_t size) {
  FILE *f = fopen("/proc/self/mountinfo", "re");
  char line[4096], place[400], type[32], options[400];
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    const char *dash = strstr(line, " - ");
    if (!dash || sscanf(line, "%*s %*s %*s %*s %399s", place) != 1) continue;
    if (sscanf(dash, " - %31s %*s %399s", type, options) != 2) continue;
    found = controller[0] ? strcmp(type, "cgroup") == 0 && lists(options, controller)
                          : strcmp(type, "cgroup2") == 0;
  }
  if (f) fclose(f);
  if (found) snprintf(out, size, "%s", place);
  return found;
}

/* The group of this process in that hierarchy, as a folder. */
static bool own_folder(const char *controller, char *out, size_t size) {
  char place[400], line[1024];
  FILE *f = mounted_at(controller, place, sizeof place) ? fopen("/proc/self/cgroup", "re") : NULL;
  bool found = false;
  while (f && !found && fgets(line, sizeof line, f)) {
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path) continue;
    *path++ = 0;
    path[strcspn(path, "\n")] = 0;
    found = controller[0] ? lists(names + 1, controller) : strcmp(line, "0") == 0;
    if (found) snprintf(out, size, "%s%s", place, strcmp(path, "/") == 0 ? "" : path);
  }
  if (f) fclose(f);
  return found;
}

/* ---- making one ---- */

static bool add_folder(fa_wall_cgroup *g, const char *controller, char *why, size_t size) {
  static atomic_int count;
  char own[300];
  if (!own_folder(controller, own, sizeof own)) {
    snprintf(why, size, "no cgroup%s%s is mounted", controller[0] ? " of " : "s v2", controller);
    return false;
  }
  char *folder = g->folder[g->n];
  snprintf(folder, sizeof g->folder[0], "%s/fa-verify-%d-%d", own, getpid(), atomic_fetch_add(&count, 1));
  if (mkdir(folder, 0755) != 0) {
    snprintf(why, size, "no cgroup can be made in %.200s: %s", own, strerror(errno));
    return false;
  }
  ++g->n;
  return true;
}

static bool make_v2(fa_wall_cgroup *g, char *why, size_t size) {
  g->version = 2;
  g->freezer = 0;
  if (!add_folder(g, "", why, size)) return false;
  const char *folder = g->folder[0];
  write_text(folder, "memory.swap.max", "0"); /* there may be no swap */
  if (write_number(folder, "memory.max", g->memory_bytes) &&
      write_number(folder, "pids.max", (size_t)fa_wall_processes()))
    return true;
  snprintf(why, size, "%.200s hands no limits of memory and processes on", folder);
  return false;
}

static bool make_v1(fa_wall_cgroup *g, char *why, size_t size) {
  g->version = 1;
  char unused[300];
  if (add_folder(g, "memory", why, size) &&
      write_number(g->folder[0], "memory.limit_in_bytes", g->memory_bytes) &&
      add_folder(g, "pids", why, size) &&
      write_number(g->folder[1], "pids.max", (size_t)fa_wall_processes())) {
    g->freezer = g->n;
    add_folder(g, "freezer", unused, sizeof unused); /* only bench freezes, and it can do without */
    return true;
  }
  if (g->n) snprintf(why, size, "%.200s takes no limit", g->folder[g->n - 1]);
  return false;
}

bool fa_wall_cgroup_make(fa_wall_cgroup *g, size_t memory_bytes, char *why, size_t size) {
  bool (*const makers[])(fa_wall_cgroup *, char *, size_t) = {make_v2, make_v1};
  for (int i = 0; i < 2; ++i) {
    *g = (fa_wall_cgroup){.memory_bytes = memory_bytes};
    if (makers[i](g, why, size)) return true;
    for (int k = 0; k < g->n; ++k) rmdir(g->folder[k]);
  }
  *g = (fa_wall_cgroup){0};
  return false;
}

bool fa_wall_cgroup_enter(const fa_wall_cgroup *g) {
  bool entered = true;
  for (int i = 0; i < g->n; ++i) entered &= write_text(g->folder[i], "cgroup.procs", "0");
  return entered;
}

/* ---- what becomes of its processes ---- */

/* True if a line of the file is this text. */
static bool has_line(const char *folder, const char *file, const char *text) {
  char path[PATH_MAX], line[256];
  bool found = false;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *f = fopen(path, "re");
  while (f && !found && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    found = strcmp(line, text) == 0;
  }
  if (f) fclose(f);
  return found;
}

/* Version 1 may answer that it is still freezing, and has to be asked again. */
bool fa_wall_cgroup_freeze(const fa_wall_cgroup *g, bool frozen) {
  if (g->freezer >= g->n) return false;
  const char *folder = g->folder[g->freezer];
  for (int waited = 0; waited < FROZEN_WITHIN_MS; ++waited) {
    bool rests;
    if (g->version == 2)
      rests = write_text(folder, "cgroup.freeze", frozen ? "1" : "0") &&
              has_line(folder, "cgroup.events", frozen ? "frozen 1" : "frozen 0");
    else
      rests = write_text(folder, "freezer.state", frozen ? "FROZEN" : "THAWED") &&
              has_line(folder, "freezer.state", frozen ? "FROZEN" : "THAWED");
    if (rests) return true;
    nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = 1000000L}, NULL);
  }
  return false;
}

bool fa_wall_cgroup_ran_out(const fa_wall_cgroup *g) {
  const char *const file = g->version == 2 ? "memory.events" : "memory.oom_control";
  char path[PATH_MAX], line[256];
  long killed = 0;
  if (!g->version) return false;
  snprintf(path, sizeof path, "%s/%s", g->folder[0], file);
  FILE *f = fopen(path, "re");
  while (f && killed == 0 && fgets(line, sizeof line, f))
    if (sscanf(line, "oom_kill %ld", &killed) != 1) killed = 0;
  if (f) fclose(f);
  return killed > 0;
}

/* ---- and removing it ---- */

/* Kills its processes one by one; true: there were none. */
static bool kill_members(const char *folder) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/cgroup.procs", folder);
  FILE *f = fopen(path, "re");
  int pid, n = 0;
  while (f && fscanf(f, "%d", &pid) == 1) {
    if (pid > 1) kill(pid, SIGKILL);
    ++n;
  }
  if (f) fclose(f);
  return n == 0;
}

bool fa_wall_cgroup_remove(const fa_wall_cgroup *g) {
  bool gone = true;
  if (g->version == 1) fa_wall_cgroup_freeze(g, false); /* there a frozen process does not die */
  for (int i = 0; i < g->n; ++i) {
    int waited = 0;
    if (g->version == 2) write_text(g->folder[i], "cgroup.kill", "1");
    while ((!kill_members(g->folder[i]) || rmdir(g->folder[i]) != 0) && waited < EMPTY_WITHIN_MS) {
      nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = STEP_MS * 1000000L}, NULL);
      waited += STEP_MS;
    }
    gone &= waited < EMPTY_WITHIN_MS;
  }
  return gone;
}
