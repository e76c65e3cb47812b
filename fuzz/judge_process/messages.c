#include "fuzz/judge_process/messages.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* Room for two descriptors, aligned as the kernel wants it. */
typedef union room {
  char bytes[CMSG_SPACE(2 * sizeof(int))];
  struct cmsghdr aligned;
} room;

bool fa_judge_send(int socket, const void *message, size_t bytes, const int *fds) {
  room r = {{0}};
  struct iovec part = {(void *)message, bytes};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
  if (fds) {
    m.msg_control = r.bytes;
    m.msg_controllen = sizeof r.bytes;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(2 * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
  }
  ssize_t n;
  do n = sendmsg(socket, &m, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  return n == (ssize_t)bytes;
}

bool fa_judge_hears(int socket, double patience_s) {
  struct pollfd p = {.fd = socket, .events = POLLIN};
  const double ms = 1e3 * patience_s;
  int n;
  do n = poll(&p, 1, patience_s < 0 ? -1 : ms > 1e9 ? 1000000000 : (int)ms);
  while (n < 0 && errno == EINTR); /* a signal starts the wait anew: patience is no deadline */
  return n > 0;
}

fa_judge_heard fa_judge_receive(int socket, void *message, size_t bytes, int *fds, double patience_s) {
  room r;
  struct iovec part = {message, bytes};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
  if (!fa_judge_hears(socket, patience_s)) return FA_JUDGE_NOTHING;
  if (fds) {
    fds[0] = fds[1] = -1;
    m.msg_control = r.bytes;
    m.msg_controllen = sizeof r.bytes;
  }
  ssize_t n;
  do n = recvmsg(socket, &m, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  const struct cmsghdr *c = n > 0 && fds ? CMSG_FIRSTHDR(&m) : NULL;
  if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
    memcpy(fds, CMSG_DATA(c), 2 * sizeof(int));
  return n == (ssize_t)bytes ? FA_JUDGE_HEARD : FA_JUDGE_ENDED;
}
