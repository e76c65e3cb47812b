#include "gpu/child/forks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_SENT = 4 };

/* ---- the server's start ---- */

/* It stays out of a terminal's ^C, which is the caller's to answer, and dies with it even in the midst of an import. */
static void run_server(const char *command, int socket, pid_t parent) {
  sigset_t none;
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  for (int sig = 1; sig < NSIG; ++sig) signal(sig, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  const int end = fcntl(socket, F_DUPFD, 3); /* it may be 0 or 1 */
  if (dup2(end, 0) < 0 || dup2(2, 1) < 0) _exit(126);
  if (close_range(3, ~0u, 0) != 0) _exit(126); /* a copy of a worker's pipe would hide its end */
  execl("/bin/sh", "sh", "-c", command, (char *)NULL);
  _exit(127);
}

int fa_forks_start(const char *command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return -1;
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) run_server(command, ends[1], parent);
  close(ends[1]);
  if (pid > 0) return ends[0];
  close(ends[0]);
  return -1;
}

/* ---- asking ---- */

/* Without waiting: a server that does not read has imported nothing yet that would be worth it. */
static bool send_request(int server, const int sent[N_SENT]) {
  union {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(N_SENT * sizeof(int))];
  } control;
  char byte = 'f';
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = sizeof control.bytes};
  memset(&control, 0, sizeof control);
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  *head = (struct cmsghdr){
      .cmsg_len = CMSG_LEN(N_SENT * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(head), sent, N_SENT * sizeof(int));
  return sendmsg(server, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

static bool receive(int fd, int32_t *number, int flags) {
  ssize_t got;
  do got = recv(fd, number, sizeof *number, flags);
  while (got < 0 && errno == EINTR);
  return got == (ssize_t)sizeof *number;
}

/* False: the lifeline came first. */
static bool wait_for(int fd, int lifeline) {
  struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = lifeline, .events = POLLIN}};
  while (poll(both, 2, -1) < 0 && errno == EINTR) {}
  return !both[1].revents;
}

bool fa_forks_ask(int server, const int descriptors[3], int lifeline, fa_forked *out, bool *gave_up) {
  int ends[2];
  int32_t pid = 0;
  *gave_up = false;
  if (server < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  const bool sent =
      send_request(server, (const int[]){descriptors[0], descriptors[1], descriptors[2], ends[1]});
  close(ends[1]);
  *gave_up = sent && !wait_for(ends[0], lifeline);
  if (sent && !*gave_up && receive(ends[0], &pid, 0) && pid > 0) {
    *out = (fa_forked){.pid = pid, .end = ends[0]};
    return true;
  }
  close(ends[0]);
  return false;
}

bool fa_forked_has_ended(const fa_forked *x, int *status) {
  int32_t said = 0;
  errno = 0;
  if (receive(x->end, &said, MSG_DONTWAIT)) {
    *status = said;
    return true;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  kill(-x->pid, SIGKILL); /* what the child has started does not notice the server's death */
  *status = SIGKILL;
  return true;
}
