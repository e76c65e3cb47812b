#include "fuzz/machine/freeze.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FROZEN = 4096 };

typedef struct tree {
  int n;
  struct {
    pid_t pid, parent;
    bool inside;
  } of[MAX_FROZEN];
} tree;

/* The parent of a process; 0: it has gone. The name in the line may hold anything, so it is read from the last ')'. */
static pid_t parent_of(const char *pid) {
  char path[300], line[512];
  int parent = 0;
  snprintf(path, sizeof path, "/proc/%s/stat", pid);
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  const size_t n = fread(line, 1, sizeof line - 1, file);
  fclose(file);
  line[n] = 0;
  const char *end = strrchr(line, ')');
  if (!end || sscanf(end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

static void look(tree *t) {
  DIR *proc = opendir("/proc");
  t->n = 0;
  for (struct dirent *e; proc && (e = readdir(proc)) && t->n < MAX_FROZEN;) {
    if (e->d_name[0] < '1' || e->d_name[0] > '9') continue;
    t->of[t->n].pid = (pid_t)atoi(e->d_name);
    t->of[t->n].inside = false;
    t->of[t->n++].parent = parent_of(e->d_name);
  }
  if (proc) closedir(proc);
}

/* Marks all descendants of `of`, in as many rounds as there are generations. How many are marked. */
static int mark(tree *t, pid_t of) {
  int marked = 0;
  for (bool more = true; more;) {
    more = false;
    for (int i = 0; i < t->n; ++i) {
      bool child = t->of[i].parent == of;
      for (int k = 0; !child && k < t->n; ++k) child = t->of[k].inside && t->of[k].pid == t->of[i].parent;
      if (!child || t->of[i].inside) continue;
      t->of[i].inside = more = true;
      ++marked;
    }
  }
  return marked;
}

int fa_freeze_children(pid_t of, bool stop) {
  tree *t = malloc(sizeof *t);
  if (!t) return 0;
  look(t);
  const int marked = mark(t, of);
  for (int i = 0; i < t->n; ++i)
    if (t->of[i].inside) kill(t->of[i].pid, stop ? SIGSTOP : SIGCONT);
  free(t);
  return marked;
}
