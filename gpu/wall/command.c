#include "gpu/wall/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- programs ---- */

/* Cuts the last n parts off a path; false: it has not so many. */
static bool cut(char *path, int n) {
  for (; n > 0; --n) {
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return false;
    *slash = 0;
  }
  return true;
}

/* The folder above bin/python3, if it is that of a Python: it has libraries, or it is an environment of another one. */
static void show_prefix(fa_wall_view *view, const char *program) {
  char folder[PATH_MAX], probe[PATH_MAX + 16];
  static const char *const marks[] = {"pyvenv.cfg", "lib/python3", "conda-meta"};
  snprintf(folder, sizeof folder, "%s", program);
  if (!cut(folder, 2)) return;
  for (size_t i = 0; i < sizeof marks / sizeof *marks; ++i) {
    snprintf(probe, sizeof probe, "%s/%s", folder, marks[i]);
    if (access(probe, F_OK) == 0) fa_wall_show(view, folder);
  }
  for (int minor = 8; minor < 40; ++minor) {
    snprintf(probe, sizeof probe, "%s/lib/python3.%d", folder, minor);
    if (access(probe, F_OK) == 0) fa_wall_show(view, folder);
  }
}

/* An environment's python is a link, often to another link: every place on the way is needed. */
void fa_wall_show_program(fa_wall_view *view, const char *path) {
  char at[PATH_MAX], target[PATH_MAX], next[2 * PATH_MAX];
  snprintf(at, sizeof at, "%s", path);
  for (int links = 0; links < 16; ++links) {
    show_prefix(view, at);
    fa_wall_show(view, at);
    const ssize_t n = readlink(at, target, sizeof target - 1);
    if (n <= 0) return;
    target[n] = 0;
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", at);
    if (target[0] != '/' && !cut(folder, 1)) return;
    snprintf(next, sizeof next, "%s%s%s", target[0] == '/' ? "" : folder, target[0] == '/' ? "" : "/",
             target);
    if (strlen(next) >= sizeof at) return;
    strcpy(at, next);
  }
}

static bool is_script(const char *path) {
  char start[2] = "";
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t n = fd >= 0 ? read(fd, start, sizeof start) : 0;
  if (fd >= 0) close(fd);
  return n == sizeof start && start[0] == '#' && start[1] == '!';
}

/* The interpreter that the first line of a script names. */
static void show_interpreter(fa_wall_view *view, const char *script) {
  char line[256] = "";
  const int fd = open(script, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
  if (fd >= 0) close(fd);
  if (n < 3 || line[0] != '#' || line[1] != '!') return;
  char *at = line + 2 + strspn(line + 2, " \t");
  at[strcspn(at, " \t\r\n")] = 0;
  if (at[0] == '/') fa_wall_show_program(view, at);
}

static void show_on_path(fa_wall_view *view, const char *name) {
  const char *at = getenv("PATH");
  char path[PATH_MAX];
  for (; at && *at; at += strcspn(at, ":"), at += *at != 0) {
    const int n = (int)strcspn(at, ":");
    if (at[0] != '/' || snprintf(path, sizeof path, "%.*s/%s", n, at, name) >= (int)sizeof path) continue;
    if (access(path, X_OK) != 0) continue;
    show_prefix(view, path);
    /* A script of somebody's own needs more than itself; the next program of that name is found instead. */
    if (!fa_wall_sees(view, path) && is_script(path)) continue;
    fa_wall_show_program(view, path);
    show_interpreter(view, path);
    return;
  }
}

/* ---- words ---- */

static void show_path(fa_wall_view *view, const char *word) {
  char path[2 * PATH_MAX];
  struct stat s;
  if (word[0] == '/')
    snprintf(path, sizeof path, "%s", word);
  else
    snprintf(path, sizeof path, "%s/%s", view->folder, word);
  if (stat(path, &s) != 0) return;
  if (fa_wall_has_dots(path)) { /* names like ./a and ../a have to be bound where they lead to */
    char real[PATH_MAX];
    if (!realpath(path, real)) return;
    snprintf(path, sizeof path, "%s", real);
  }
  if (!S_ISREG(s.st_mode) || access(path, X_OK) != 0) {
    fa_wall_show(view, path);
    return;
  }
  fa_wall_show_program(view, path);
  show_interpreter(view, path);
}

static void show_word(fa_wall_view *view, const char *word) {
  const char *value = strpbrk(word, "=:");
  if (!word[0]) return;
  show_path(view, word);
  if (value && value[1]) show_path(view, value + 1);
  if (!strchr(word, '/')) show_on_path(view, word);
}

/* Takes the next word of a shell command off *at, without its quotes; false: there is none. */
static bool next_word(const char **at, char *word, size_t size) {
  size_t n = 0;
  char quote = 0;
  while (**at && strchr(" \t\n;|&<>()", **at)) ++*at;
  if (!**at) return false;
  for (; **at && (quote || !strchr(" \t\n;|&<>()", **at)); ++*at) {
    const char c = **at;
    if (quote && c == quote) {
      quote = 0;
    } else if (!quote && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      const bool escaped = c == '\\' && quote != '\'' && (*at)[1];
      if (escaped) ++*at;
      if (n + 1 < size) word[n++] = **at;
    }
  }
  word[n] = 0;
  return true;
}

void fa_wall_show_words(fa_wall_view *view, const char *command) {
  char word[PATH_MAX];
  while (next_word(&command, word, sizeof word)) show_word(view, word);
}
