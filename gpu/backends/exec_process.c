#include "gpu/backends/exec_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the supervisor ---- */

static void on_child(int sig) {
  (void)sig; /* it only interrupts ppoll */
}

/* Closes inherited descriptors: the death of a worker is noticed by the end of its pipe, so no copy of
 * another process's pipe may stay open here. */
static void close_from(int first) {
  if (close_range((unsigned)first, ~0u, 0) == 0) return;
  const long limit = sysconf(_SC_OPEN_MAX);
  for (int fd = first; fd < (limit > 0 && limit < 65536 ? limit : 65536); ++fd) close(fd);
}

static void run_command(const char *command, int in, int out) {
  sigset_t none;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int sig = 1; sig < NSIG; ++sig) signal(sig, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  const int a = fcntl(in, F_DUPFD, 3), b = fcntl(out, F_DUPFD, 3); /* in or out may be 0 or 1 */
  if (dup2(a, 0) < 0 || dup2(b, 1) < 0) _exit(126);
  close_from(3);
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

static void remove_folder(const char *folder) {
  DIR *open_folder = opendir(folder);
  char path[1024];
  for (struct dirent *e; open_folder && (e = readdir(open_folder));)
    if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path) unlink(path);
  if (open_folder) closedir(open_folder);
  rmdir(folder);
}

/* Waits until the child has ended. A byte on the lifeline kills it; the end of the lifeline gives it a grace
 * period. */
static int keep(pid_t child, int lifeline) {
  sigset_t none;
  double deadline = 0;
  int status = 0;
  sigemptyset(&none);
  while (waitpid(child, &status, WNOHANG) == 0) {
    struct pollfd fd = {.fd = deadline > 0 ? -1 : lifeline, .events = POLLIN};
    const double left = deadline > 0 ? deadline - fa_exec_now() : 0;
    if (deadline > 0 && left <= 0) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      deadline = fa_exec_now() + 1;
      continue;
    }
    const struct timespec wait = {.tv_sec = (time_t)left,
                                  .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    if (ppoll(&fd, 1, deadline > 0 ? &wait : NULL, &none) <= 0 || !fd.revents) continue;
    char byte;
    deadline = fa_exec_now() + (read(lifeline, &byte, 1) == 1 ? 0 : FA_EXEC_GRACE_SECONDS);
  }
  kill(-child, SIGKILL); /* whatever it started */
  return status;
}

/* Ends in the same way as the child, so that the parent sees its status. */
static void end_like(int status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  prctl(PR_SET_DUMPABLE, 0); /* one core dump is enough */
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

static void supervisor_main(const char *command, const char *folder, int in, int out, int lifeline) {
  static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
  struct sigaction action = {.sa_handler = on_child};
  sigset_t block;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i) signal(ignored[i], SIG_IGN);
  sigaction(SIGCHLD, &action, NULL);
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  sigprocmask(SIG_SETMASK, &block, NULL);
  const pid_t child = fork();
  if (child == 0) run_command(command, in, out);
  setpgid(child, child); /* in parent and child: whichever comes first */
  lifeline = dup2(lifeline, 0);
  close_from(1);
  const int status = child < 0 ? 126 << 8 : keep(child, lifeline);
  remove_folder(folder);
  end_like(status);
}

/* ---- the parent ---- */

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

static void close_pair(const int *fd) {
  if (fd[0] >= 0) close(fd[0]);
  if (fd[1] >= 0) close(fd[1]);
}

fa_status fa_exec_start(fa_exec_process *x, const char *command, fa_error *err) {
  int down[2] = {-1, -1}, up[2] = {-1, -1}, life[2] = {-1, -1};
  memset(x, 0, sizeof *x);
  errno = 0;
  fa_status status = make_folder(x, err);
  if (status != FA_OK) return status;
  /* Sockets, because writing to a pipe without a reader raises SIGPIPE. */
  pid_t pid = -1;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, down) == 0 && pipe2(up, O_CLOEXEC) == 0 &&
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, life) == 0)
    pid = fork();
  if (pid == 0) {
    close(down[0]), close(up[0]), close(life[1]);
    supervisor_main(command, x->folder, down[1], up[1], life[0]);
  }
  if (pid < 0) {
    status = fa_fail(err, FA_ERR_IO, "no process can be made: %s", strerror(errno));
    rmdir(x->folder);
    close_pair(down), close_pair(up), close_pair(life);
    return status;
  }
  close(down[1]), close(up[1]), close(life[0]);
  x->supervisor = pid;
  x->lifeline = life[1];
  x->lines = (fa_exec_lines){.to = down[0], .from = up[0]};
  return FA_OK;
}

void fa_exec_stop(fa_exec_process *x, bool at_once, char *how, size_t how_size) {
  int status = 0;
  if (x->supervisor == 0) return;
  close(x->lines.to);
  if (at_once && send(x->lifeline, "x", 1, MSG_NOSIGNAL) < 0) {} /* fails if it has ended already */
  close(x->lifeline);
  while (waitpid(x->supervisor, &status, 0) < 0 && errno == EINTR) {}
  close(x->lines.from);
  fa_exec_lines_free(&x->lines);
  memset(x, 0, sizeof *x);
  if (!how) return;
  const int sig = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  const char *name = sig > 0 ? sigabbrev_np(sig) : NULL;
  if (WIFSIGNALED(status))
    snprintf(how, how_size, "died of SIG%s (%s)", name ? name : "?", strsignal(sig));
  else if (name)
    snprintf(how, how_size, "ended with status %d (a shell says so of SIG%s)", WEXITSTATUS(status), name);
  else
    snprintf(how, how_size, "ended with status %d", WEXITSTATUS(status));
}
