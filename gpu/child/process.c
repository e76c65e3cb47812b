#include "gpu/child/process.h"

#include "gpu/child/supervisor.h"
#include "gpu/wall/build.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_PAIRS = 5 };
#define NO_PAIR                                                                                              \
  { -1, -1 }

static fa_status make_folder(fa_exec_process *x, fa_error *err) {
  static const char *const variable[] = {"FA_EXEC_DIR", "TMPDIR"};
  const char *base = "/tmp", *from = "/tmp";
  char real[PATH_MAX];
  for (int i = 1; i >= 0; --i) {
    const char *value = getenv(variable[i]);
    if (value && *value) base = value, from = variable[i];
  }
  if (!realpath(base, real) ||
      snprintf(x->folder, sizeof x->folder, "%s/fa-exec-XXXXXX", real) >= (int)sizeof x->folder)
    return fa_fail(err, FA_ERR_INPUT, "%s: %s: %s", from, base,
                   errno ? strerror(errno) : "its name is too long");
  if (mkdtemp(x->folder)) return FA_OK;
  return fa_fail(err, FA_ERR_INPUT, "%s: no folder can be made in %s: %s", from, real, strerror(errno));
}

static void close_one(int fd) {
  if (fd >= 0) close(fd);
}

static void close_side(fa_station *s, int side) {
  int *const pair[N_PAIRS] = {s->down, s->up, s->life, s->err, s->report};
  for (int i = 0; i < N_PAIRS; ++i) {
    close_one(pair[i][side]);
    pair[i][side] = -1;
  }
}

/* Sockets where we write, because writing to a pipe without a reader raises SIGPIPE. */
static bool connect_all(fa_station *s) {
  const bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->down) == 0 &&
                    pipe2(s->up, O_CLOEXEC) == 0 &&
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->life) == 0;
  if (!made || !s->wall) return made;
  if (fa_layer_in(s->wall->layers, FA_LAYER_STDERR) && pipe2(s->err, O_CLOEXEC) != 0) return false;
  shutdown(s->down[1], SHUT_WR); /* it may send us nothing, no open files either */
  return pipe2(s->report, O_CLOEXEC) == 0;
}

static fa_status start(fa_exec_process *x, fa_station *s, fa_error *err) {
  const pid_t pid = connect_all(s) ? fork() : -1;
  if (pid == 0) {
    /* The lifeline's ends are the other way round: [0] is the supervisor's. */
    close_one(s->down[0]), close_one(s->up[0]), close_one(s->life[1]), close_one(s->report[0]);
    fa_supervise(s);
  }
  if (pid < 0) {
    fa_fail(err, FA_ERR_IO, "no process can be made: %s", strerror(errno));
    rmdir(x->folder);
    close_side(s, 0), close_side(s, 1);
    return FA_ERR_IO;
  }
  close_one(s->down[1]), close_one(s->up[1]), close_one(s->life[0]);
  close_one(s->err[0]), close_one(s->err[1]), close_one(s->report[1]);
  x->supervisor = pid;
  x->lifeline = s->life[1];
  x->lines = (fa_exec_lines){.to = s->down[0], .from = s->up[0]};
  return FA_OK;
}

/* Starts it behind a wall, and waits until it has come through the door. */
static fa_status start_guest(fa_exec_process *x, fa_station *s, const fa_exec_guest *guest, fa_error *err) {
  fa_wall wall;
  fa_status status = fa_wall_make(guest->terms, s->command, x->folder, &wall, err);
  if (status != FA_OK) {
    rmdir(x->folder);
    return status;
  }
  s->wall = &wall, s->memory = guest->memory, s->name = guest->name;
  x->behind_wall = true;
  x->cgroup = wall.cgroup;
  status = start(x, s, err);
  if (status != FA_OK) {
    fa_wall_cgroup_remove(&wall.cgroup);
  } else {
    snprintf(guest->found, guest->found_size, "%s", wall.text);
    status = fa_wall_await(&wall, s->report[0], err);
    close_one(s->report[0]);
    if (status != FA_OK) fa_exec_stop(x, true, NULL, 0);
  }
  fa_wall_free(&wall);
  return status;
}

fa_status fa_exec_start(fa_exec_process *x, const char *command, int server, const fa_exec_guest *guest,
                        fa_error *err) {
  fa_station s = {.command = command,
                  .server = server,
                  .memory = -1,
                  .down = NO_PAIR,
                  .up = NO_PAIR,
                  .life = NO_PAIR,
                  .err = NO_PAIR,
                  .report = NO_PAIR};
  memset(x, 0, sizeof *x);
  errno = 0;
  const fa_status status = make_folder(x, err);
  if (status != FA_OK) return status;
  s.folder = x->folder;
  return guest ? start_guest(x, &s, guest, err) : start(x, &s, err);
}

/* After the supervisor has ended like the child. */
static void describe_end(const fa_exec_process *x, int status, char *how, size_t size) {
  const int sig = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  const char *name = sig > 0 ? sigabbrev_np(sig) : NULL;
  char byte, limit[32];
  if (size == 0) return;
  if (WIFSIGNALED(status))
    snprintf(how, size, "died of SIG%s (%s)", name ? name : "?", strsignal(sig));
  else if (name)
    snprintf(how, size, "ended with status %d (a shell says so of SIG%s)", WEXITSTATUS(status), name);
  else
    snprintf(how, size, "ended with status %d", WEXITSTATUS(status));
  if (recv(x->lifeline, &byte, 1, MSG_DONTWAIT) != 1 || byte != FA_RAN_OUT[0]) return;
  const size_t used = strlen(how);
  fa_wall_bytes_text(x->cgroup.memory_bytes, limit, sizeof limit);
  snprintf(how + used, size - used, ": it wanted more memory than %s, which is its limit", limit);
}

void fa_exec_stop(fa_exec_process *x, bool at_once, char *how, size_t how_size) {
  int status = 0;
  if (x->supervisor == 0) return;
  close(x->lines.to);
  const char *const byte = at_once ? "x" : "e";
  if ((at_once || x->behind_wall) && send(x->lifeline, byte, 1, MSG_NOSIGNAL) < 0) {
  } /* it may have ended already */
  shutdown(x->lifeline, SHUT_WR);
  while (waitpid(x->supervisor, &status, 0) < 0 && errno == EINTR) {}
  describe_end(x, status, how, how ? how_size : 0);
  close(x->lifeline);
  close(x->lines.from);
  fa_exec_lines_free(&x->lines);
  memset(x, 0, sizeof *x);
}
