#include "fuzz/judge_process/process.h"
#include "fuzz/judge_process/client.h"
#include "fuzz/judge_process/server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Of the process that started it, and of all that it forks. */
static struct {
  bool started;
  int door;
  double patience_s;
  pid_t keeper, owner; /* owner: who started it, and may end it */
} the;

/* ---- the keeper ---- */

enum { MOST_DEATHS = 20 };

/* Of a terminal's ^C its parent decides. Its output is nobody's, so that whoever reads the parent's sees its end. */
static void become_quiet(void) {
  const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  dup2(nowhere, STDIN_FILENO);
  dup2(nowhere, STDOUT_FILENO);
}

static int serve_once(const fa_judge_machines *machines, int door) {
  const pid_t keeper = getpid(), pid = fork();
  int how = 0;
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(getppid() == keeper ? fa_judge_serve(machines, door) : 0);
  }
  if (pid < 0) return 3;
  while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {}
  return how;
}

static void keep(const fa_judge_machines *machines, int door) {
  become_quiet();
  for (int deaths = 1; deaths <= MOST_DEATHS && serve_once(machines, door) != 0; ++deaths) {
    const struct timespec pause = {.tv_nsec = 20000000L * deaths};
    nanosleep(&pause, NULL);
  }
  _exit(0);
}

fa_status fa_judge_process_start(const fa_judge_machines *machines, double patience_s, fa_error *err) {
  int pair[2];
  if (the.started) return FA_OK;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return fa_fail(err, FA_ERR_IO, "socketpair: %s", strerror(errno));
  fflush(NULL); /* otherwise the child would print our buffered text again */
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) {
    close(pair[0]);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) keep(machines, pair[1]);
    _exit(0);
  }
  close(pair[1]);
  if (pid < 0) {
    close(pair[0]);
    return fa_fail(err, FA_ERR_IO, "fork: %s", strerror(errno));
  }
  the.started = true;
  the.door = pair[0];
  the.patience_s = patience_s > 0 ? patience_s : -1;
  the.keeper = pid;
  the.owner = parent;
  return FA_OK;
}

/* Of this thread: what it asks with. */
static _Thread_local struct {
  pid_t owner; /* 0: nobody; another: a parent, whose connection this is a copy of */
  fa_judge_client client;
  bool is_silent; /* a process that does not even greet is waited for once */
} mine;

static void disconnect(void) {
  if (mine.owner != 0) fa_judge_client_close(&mine.client);
  mine.owner = 0;
}

void fa_judge_process_stop(void) {
  if (!the.started || the.owner != getpid()) return;
  disconnect();
  mine.is_silent = false;
  close(the.door);
  kill(the.keeper, SIGKILL); /* and with it what it keeps */
  while (waitpid(the.keeper, NULL, 0) < 0 && errno == EINTR) {}
  the.started = false;
}

/* ---- those that ask ---- */

static fa_status connect_anew(fa_error *err) {
  enum { TRIES = 3 }; /* one may come to a door whose server is about to end */
  fa_status status = FA_ERR_IO;
  disconnect();
  for (int i = 0; i < TRIES && status == FA_ERR_IO && !mine.is_silent; ++i)
    status = fa_judge_client_connect(&mine.client, the.door, the.patience_s, &mine.is_silent, err);
  if (status == FA_OK) mine.owner = getpid();
  return status;
}

fa_status fa_judge_process_machine(fa_judge_machine **out, bool *is_new, fa_error *err) {
  *out = NULL;
  *is_new = false;
  if (!the.started) return fa_fail(err, FA_ERR_UNSUPPORTED, "the judge's process was not started");
  if (mine.is_silent) return fa_fail(err, FA_ERR_IO, FA_JUDGE_SILENT_TEXT);
  if (mine.owner != getpid() || !fa_judge_client_is_there(&mine.client)) {
    const fa_status status = connect_anew(err);
    if (status != FA_OK) return status;
    *is_new = true;
  }
  *out = &mine.client.machine;
  return FA_OK;
}
