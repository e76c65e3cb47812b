/* Outputs of one run must be different files. */
#include "fuzz/options/parts.h"

#include <string.h>
#include <sys/stat.h>

static bool is_one_inode(const struct stat *x, const struct stat *y) {
  return x->st_ino == y->st_ino && x->st_dev == y->st_dev;
}

/* Returns where the name begins; folder receives the part before it. */
static const char *split_path(const char *path, char *folder, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(folder, size, "%.*s/.", slash ? (int)(slash - path) : 1, slash ? path : ".");
  return slash ? slash + 1 : path;
}

/* True also for two names of one file. Special files such as /dev/null may be given for any number of
 * outputs. */
static bool is_same_file(const char *a, const char *b) {
  struct stat x, y;
  char folder[2][4096];
  const bool there = stat(a, &x) == 0;
  if (there && !S_ISREG(x.st_mode)) return false;
  if (strcmp(a, b) == 0) return true;
  if (there) return stat(b, &y) == 0 && is_one_inode(&x, &y);
  const char *name_a = split_path(a, folder[0], sizeof folder[0]);
  const char *name_b = split_path(b, folder[1], sizeof folder[1]);
  return strcmp(name_a, name_b) == 0 && stat(folder[0], &x) == 0 && stat(folder[1], &y) == 0 &&
         is_one_inode(&x, &y);
}

/* Two outputs to one file would leave only the last. */
int fa_cli_check_outputs(const fa_cli *cli) {
  /* The baseline is read, but would be overwritten by what was held against it. */
  const struct {
    const char *name, *path;
  } out[] = {{"emit", cli->emit},   {"report", cli->report},    {"out", cli->out},
             {"html", cli->html},   {"junit", cli->junit},      {"merge", cli->merge},
             {"score", cli->score}, {"baseline", cli->baseline}};
  enum { N = sizeof out / sizeof *out };
  for (int i = 0; i < N; ++i)
    for (int j = i + 1; j < N; ++j)
      if (out[i].path && out[j].path && is_same_file(out[i].path, out[j].path))
        return fa_cli_usage_error("--%s and --%s name one file: %s", out[i].name, out[j].name, out[j].path);
  return 0;
}
