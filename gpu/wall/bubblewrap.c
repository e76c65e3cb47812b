#include "gpu/wall/bubblewrap.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What each layer asks of it; the files have a view of their own. */
static const char *const alone[] = {"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc",
                                    "--unshare-uts",  "--unshare-cgroup", "--hostname",    "candidate",
                                    "--new-session",  "--cap-drop",       "ALL",           NULL};
static const char *const no_network[] = {"--unshare-net", NULL};
static const char *const everything[] = {"--dev-bind", "/", "/", NULL};

static bool in_path(const char *name) {
  const char *at = getenv("PATH");
  char path[PATH_MAX];
  for (; at && *at; at += strcspn(at, ":"), at += *at != 0) {
    const int n = (int)strcspn(at, ":");
    if (snprintf(path, sizeof path, "%.*s/%s", n, at, name) < (int)sizeof path && access(path, X_OK) == 0)
      return true;
  }
  return false;
}

static void add_namespaces(fa_layer_set layers, fa_wall_words *to) {
  if (fa_layer_in(layers, FA_LAYER_PROCESSES))
    fa_wall_add_all(to, alone);
  else if (geteuid() != 0) /* only root can do the rest without a user namespace */
    fa_wall_add(to, "--unshare-user");
  if (fa_layer_in(layers, FA_LAYER_NETWORK)) fa_wall_add_all(to, no_network);
}

fa_status fa_bubblewrap_arguments(const fa_wall_terms *terms, const fa_wall_view *view, const char *exchange,
                                  fa_wall_words *to, fa_error *err) {
  const fa_layer_set its = 1u << FA_LAYER_PROCESSES | 1u << FA_LAYER_NETWORK | 1u << FA_LAYER_FILES;
  const bool own_processes = fa_layer_in(terms->layers, FA_LAYER_PROCESSES);
  if (!(terms->layers & its)) return FA_OK;
  if (!in_path("bwrap"))
    return fa_fail(err, FA_ERR_INPUT,
                   "--untrusted: the layers processes, network and files need bubblewrap, and there is no "
                   "bwrap in PATH: "
                   "install the package bubblewrap, or leave each of them out by --without");
  fa_wall_add_all(to, (const char *const[]){"bwrap", "--die-with-parent", NULL});
  add_namespaces(terms->layers, to);
  if (fa_layer_in(terms->layers, FA_LAYER_FILES)) {
    fa_wall_view_arguments(view, !own_processes, exchange, to);
  } else {
    fa_wall_add_all(to, everything);
    if (own_processes) fa_wall_add_all(to, (const char *const[]){"--proc", "/proc", NULL});
  }
  fa_wall_add(to, "--");
  return FA_OK;
}

/* ---- what went wrong ---- */

/* Runs a command that does nothing with these arguments; what it says goes to said. */
static bool works(fa_wall_words *arguments, char *said, size_t size) {
  int ends[2], status = 0;
  fa_wall_add_all(arguments, (const char *const[]){"--", "/bin/sh", "-c", ":", NULL});
  if (arguments->failed || pipe2(ends, O_CLOEXEC) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    execvp(arguments->v[0], arguments->v);
    _exit(127);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t n = 1; n > 0 && used<size - 1; used += n> 0 ? (size_t)n : 0)
    n = read(ends[0], said + used, size - 1 - used);
  said[used] = 0;
  said[strcspn(said, "\n")] = 0;
  close(ends[0]);
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

fa_status fa_bubblewrap_diagnose(fa_layer_set layers, fa_error *err) {
  const fa_layer its[] = {FA_LAYER_PROCESSES, FA_LAYER_NETWORK, FA_LAYER_FILES};
  char said[300] = "";
  for (int i = 0; i < 3; ++i) {
    fa_wall_words w = {0};
    if (!fa_layer_in(layers, its[i])) continue;
    fa_wall_add(&w, "bwrap");
    add_namespaces(1u << its[i], &w);
    fa_wall_add_all(&w, everything);
    if (its[i] == FA_LAYER_PROCESSES) fa_wall_add_all(&w, (const char *const[]){"--proc", "/proc", NULL});
    const bool good = works(&w, said, sizeof said);
    fa_wall_words_free(&w);
    if (!good && strstr(said, "Unknown option"))
      return fa_fail(
          err, FA_ERR_INPUT,
          "--untrusted: the layer %s needs bubblewrap 0.8 or later (Debian 12, Ubuntu 24.04): \"%s\"; "
          "or leave it out: --without %s",
          fa_layers[its[i]].name, said, fa_layers[its[i]].name);
    if (!good)
      return fa_fail(err, FA_ERR_INPUT,
                     "--untrusted: the layer %s cannot be had here: \"%s\"; the machine must let this user "
                     "make namespaces "
                     "(in a container: unmask /proc, allow user namespaces), or leave it out: --without %s",
                     fa_layers[its[i]].name, said, fa_layers[its[i]].name);
  }
  return fa_fail(err, FA_ERR_INPUT,
                 "--untrusted: the wall could not be built; what bubblewrap says is above");
}
