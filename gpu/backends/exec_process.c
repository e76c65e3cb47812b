#include "gpu/backends/exec_process.h"

#include "gpu/wall/build.h"
#include "gpu/wall/printed.h"

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

/* What the two processes on this side of the child share: pairs of descriptors, [0] ours and [1] the child's. */
typedef struct station {
  const char *command, *folder, *name;
  const fa_wall *wall; /* NULL: it is trusted */
  int memory;          /* the region; -1: it opens it by its path */
  int down[2], up[2];  /* its stdin and stdout */
  int life[2];         /* ours, the supervisor's */
  int err[2];          /* its stderr, read by the supervisor; -1: passed through */
  int report[2];       /* what the door says; -1: there is no door */
} station;

enum { N_PAIRS = 5, EMPTY_SECONDS = 5 };
#define NO_PAIR                                                                                              \
  { -1, -1 }

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

static void run_command(const station *s) {
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

/* Waits until the child has ended, and passes on what it prints. */
static int keep(pid_t child, int lifeline, const fa_wall *wall, fa_wall_printed *printed) {
  sigset_t none;
  double deadline = 0;
  int status = 0;
  sigemptyset(&none);
  while (waitpid(child, &status, WNOHANG) == 0) {
    struct pollfd fd[2] = {{.fd = deadline > 0 ? -1 : lifeline, .events = POLLIN},
                           {.fd = printed->from, .events = POLLIN}};
    const double left = deadline > 0 ? deadline - fa_exec_now() : 0;
    if (deadline > 0 && left <= 0) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      deadline = fa_exec_now() + 1;
      continue;
    }
    const struct timespec wait = {.tv_sec = (time_t)left,
                                  .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
    if (ppoll(fd, 2, deadline > 0 ? &wait : NULL, &none) <= 0) continue;
    if (fd[1].revents) fa_wall_printed_pass(printed);
    if (!fd[0].revents) continue;
    deadline = deadline_of(lifeline, !wall);
    if (wall)
      fa_wall_cgroup_freeze(&wall->cgroup, false); /* a judge that died in a rival's turn leaves it frozen */
  }
  kill(-child, SIGKILL); /* whatever it started */
  return status;
}

/* What the supervisor says on the lifeline before it ends, if there is something to say. */
#define RAN_OUT "m"

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
  if (ran_out && send(lifeline, RAN_OUT, 1, MSG_NOSIGNAL) < 0) {} /* nobody listens any more */
  if (!fa_wall_cgroup_remove(&wall->cgroup) || !empty)
    dprintf(STDERR_FILENO, "fa-verify: processes of the candidate have outlived it\n");
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

/* From now on the child's descriptors are the child's alone. */
static void leave_to_child(const station *s, fa_wall_printed *printed, int *lifeline) {
  const int err = s->err[0] >= 0 ? fcntl(s->err[0], F_DUPFD, 3) : -1; /* it may be 0 or 1 */
  *lifeline = dup2(s->life[0], 0);
  if (err >= 0) {
    printed->from = dup2(err, 1); /* and our own stderr stays 2 */
    close_from(3);
  } else {
    close_from(s->wall ? 3 : 1);
  }
}

static void supervisor_main(const station *s) {
  static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
  struct sigaction action = {.sa_handler = on_child};
  fa_wall_printed printed = {.from = -1, .name = s->name};
  sigset_t block;
  int lifeline;
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; ++i) signal(ignored[i], SIG_IGN);
  sigaction(SIGCHLD, &action, NULL);
  sigemptyset(&block);
  sigaddset(&block, SIGCHLD);
  sigprocmask(SIG_SETMASK, &block, NULL);
  if (s->wall && fa_layer_in(s->wall->layers, FA_LAYER_PROCESSES)) prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t child = fork();
  if (child == 0) run_command(s);
  setpgid(child, child); /* in parent and child: whichever comes first */
  leave_to_child(s, &printed, &lifeline);
  const int status = child < 0 ? 126 << 8 : keep(child, lifeline, s->wall, &printed);
  if (s->wall) wait_until_empty(s->wall, lifeline);
  fa_wall_printed_finish(&printed);
  remove_folder(s->folder);
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

static void close_one(int fd) {
  if (fd >= 0) close(fd);
}

static void close_side(station *s, int side) {
  int *const pair[N_PAIRS] = {s->down, s->up, s->life, s->err, s->report};
  for (int i = 0; i < N_PAIRS; ++i) {
    close_one(pair[i][side]);
    pair[i][side] = -1;
  }
}

/* Sockets where we write, because writing to a pipe without a reader raises SIGPIPE. */
static bool connect_all(station *s) {
  const bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->down) == 0 &&
                    pipe2(s->up, O_CLOEXEC) == 0 &&
                    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->life) == 0;
  if (!made || !s->wall) return made;
  if (fa_layer_in(s->wall->layers, FA_LAYER_STDERR) && pipe2(s->err, O_CLOEXEC) != 0) return false;
  shutdown(s->down[1], SHUT_WR); /* it may send us nothing, no open files either */
  return pipe2(s->report, O_CLOEXEC) == 0;
}

static fa_status start(fa_exec_process *x, station *s, fa_error *err) {
  const pid_t pid = connect_all(s) ? fork() : -1;
  if (pid == 0) {
    /* The lifeline's ends are the other way round: [0] is the supervisor's. */
    close_one(s->down[0]), close_one(s->up[0]), close_one(s->life[1]), close_one(s->report[0]);
    supervisor_main(s);
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
static fa_status start_guest(fa_exec_process *x, station *s, const fa_exec_guest *guest, fa_error *err) {
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

fa_status fa_exec_start(fa_exec_process *x, const char *command, const fa_exec_guest *guest, fa_error *err) {
  station s = {.command = command,
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
  if (recv(x->lifeline, &byte, 1, MSG_DONTWAIT) != 1 || byte != RAN_OUT[0]) return;
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
