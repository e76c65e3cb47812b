#include "gpu/child/supervisor.h"

#include "gpu/child/forks.h"
#include "gpu/child/process.h"
#include "gpu/wall/build.h"
#include "gpu/wall/printed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EMPTY_SECONDS = 5 };

/* What is supervised: a child of ours, or one of a server's. */
typedef struct ward {
  pid_t pid;
  bool is_servers;
  fa_forked forked; /* of a server's */
} ward;

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

static void run_command(const fa_station *s) {
  sigset_t none;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int sig = 1; sig < NSIG; ++sig) signal(sig, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (s->wall)
    fa_wall_enter(s->wall, (const int[]){s->down[1], s->up[1], s->err[1], s->memory, s->report[1], -1});
  const int a = fcntl(s->down[1], F_DUPFD, 3), b = fcntl(s->up[1], F_DUPFD, 3); /* they may be 0 or 1 */
  if (dup2(a, 0) < 0 || dup2(b, 1) < 0) _exit(126);
  close_from(3);
  execl("/bin/sh", "sh", "-c", s->command, (char *)NULL);
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

/* How long the child may go on: the byte 'x' on the lifeline kills it, another one gives it a grace period, and so does the
 * end of the lifeline, but not to a child that nobody trusts. */
static double deadline_of(int lifeline, bool trusted) {
  char byte = 'x';
  const bool asked = read(lifeline, &byte, 1) == 1;
  return fa_exec_now() + ((asked ? byte != 'x' : trusted) ? FA_EXEC_GRACE_SECONDS : 0);
}

static bool has_ended(const ward *w, int *status) {
  return w->is_servers ? fa_forked_has_ended(&w->forked, status) : waitpid(w->pid, status, WNOHANG) != 0;
}

/* Waits until the child has ended, and passes on what it prints. What it has started is killed with it: of a server's child by
 * the server, before its number can be another process's. */
static int keep(const ward *w, int lifeline, const fa_wall *wall, fa_wall_printed *printed) {
  sigset_t none;
  double deadline = 0;
  int status = 0;
  sigemptyset(&none);
  while (!has_ended(w, &status)) {
    struct pollfd fd[3] = {{.fd = deadline > 0 ? -1 : lifeline, .events = POLLIN},
                           {.fd = printed->from, .events = POLLIN},
                           {.fd = w->is_servers ? w->forked.end : -1, .events = POLLIN}};
    const double left = deadline > 0 ? deadline - fa_exec_now() : 0;
    if (deadline > 0 && left <= 0) {
      kill(-w->pid, SIGKILL);
      kill(w->pid, SIGKILL);
      deadline = fa_exec_now() + 1;
      continue;
    }
    const struct timespec wait = {.tv_sec = (time_t)left,
                                  .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    if (ppoll(fd, 3, deadline > 0 ? &wait : NULL, &none) <= 0) continue;
    if (fd[1].revents) fa_wall_printed_pass(printed);
    if (!fd[0].revents) continue;
    deadline = deadline_of(lifeline, !wall);
    if (wall)
      fa_wall_cgroup_freeze(&wall->cgroup, false); /* a judge that died in a rival's turn leaves it frozen */
  }
  if (!w->is_servers) kill(-w->pid, SIGKILL);
  return status;
}

/* Behind a wall: the first process of its namespace has been handed to us, and once it is gone all of them are. */
static void wait_until_empty(const fa_wall *wall, int lifeline) {
  const double deadline = fa_exec_now() + EMPTY_SECONDS;
  bool empty = !fa_layer_in(wall->layers, FA_LAYER_PROCESSES);
  while (!empty && fa_exec_now() < deadline) {
    const pid_t ended = waitpid(-1, NULL, WNOHANG);
    empty = ended < 0 && errno == ECHILD;
    if (ended == 0) nanosleep(&(struct timespec){.tv_sec = 0, .tv_nsec = 1000000}, NULL);
  }
  const bool ran_out = fa_wall_cgroup_ran_out(&wall->cgroup);
  if (ran_out && send(lifeline, FA_RAN_OUT, 1, MSG_NOSIGNAL) < 0) {} /* nobody listens any more */
  if (!fa_wall_cgroup_remove(&wall->cgroup) || !empty)
    dprintf(STDERR_FILENO, "fa-verify: processes of the candidate have outlived it\n");
}

/* Ends in the same way as the child, so that the parent sees its status. */
_Noreturn static void end_like(int status) {
  if (!WIFSIGNALED(status)) _exit(WEXITSTATUS(status));
  prctl(PR_SET_DUMPABLE, 0); /* one core dump is enough */
  signal(WTERMSIG(status), SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  kill(getpid(), WTERMSIG(status));
  _exit(128 + WTERMSIG(status));
}

/* From now on the child's descriptors are the child's alone. */
static void leave_to_child(const fa_station *s, ward *w, fa_wall_printed *printed, int *lifeline) {
  const int err = s->err[0] >= 0 ? fcntl(s->err[0], F_DUPFD, 3) : -1; /* it may be 0 or 1 */
  const int end = w->is_servers ? fcntl(w->forked.end, F_DUPFD, 3) : -1;
  *lifeline = dup2(s->life[0], 0);
  if (err >= 0) printed->from = dup2(err, 1); /* and our own stderr stays 2 */
  if (end >= 0) w->forked.end = dup2(end, 1);
  close_from(s->wall ? 3 : end >= 0 ? 2 : 1);
}

/* A child that nobody trusts is never a server's: it would be of one memory with all others before it stands behind its wall. */
static ward start(const fa_station *s) {
  ward w = {.pid = -1};
  bool gave_up = false;
  w.is_servers = !s->wall && fa_forks_ask(s->server, (const int[]){s->down[1], s->up[1], STDERR_FILENO},
                                          s->life[0], &w.forked, &gave_up);
  if (gave_up) return w;
  w.pid = w.is_servers ? w.forked.pid : fork();
  if (w.pid == 0) run_command(s);
  if (w.pid > 0 && !w.is_servers) setpgid(w.pid, w.pid); /* in parent and child: whichever comes first */
  return w;
}

static void set_signals(void) {
  static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
  struct sigaction action = {.sa_handler = on_child};
  sigset_t block;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i) signal(ignored[i], SIG_IGN);
  sigaction(SIGCHLD, &action, NULL);
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  sigprocmask(SIG_SETMASK, &block, NULL);
}

void fa_supervise(const fa_station *s) {
  fa_wall_printed printed = {.from = -1, .name = s->name};
  int lifeline;
  set_signals();
  if (s->wall && fa_layer_in(s->wall->layers, FA_LAYER_PROCESSES)) prctl(PR_SET_CHILD_SUBREAPER, 1);
  ward w = start(s);
  leave_to_child(s, &w, &printed, &lifeline);
  const int status = w.pid < 0 ? 126 << 8 : keep(&w, lifeline, s->wall, &printed);
  if (s->wall) wait_until_empty(s->wall, lifeline);
  fa_wall_printed_finish(&printed);
  remove_folder(s->folder);
  end_like(status);
}
