#include "gpu/child/lines.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

double fa_exec_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool fa_exec_send(fa_exec_lines *x, const char *text) {
  struct iovec part[2] = {{(void *)text, strlen(text)}, {"\n", 1}};
  for (int first = 0; first < 2;) {
    const struct msghdr message = {.msg_iov = part + first, .msg_iovlen = (size_t)(2 - first)};
    ssize_t put = sendmsg(x->to, &message, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    for (; first < 2 && (size_t)put >= part[first].iov_len; ++first) put -= (ssize_t)part[first].iov_len;
    if (first == 2) break;
    part[first].iov_base = (char *)part[first].iov_base + put;
    part[first].iov_len -= (size_t)put;
  }
  return true;
}

/* True if more bytes arrived. */
static bool read_more(fa_exec_lines *x) {
  if (x->capacity - x->n_bytes < 4097) {
    char *bigger = realloc(x->bytes, x->capacity + 65536);
    if (!bigger) return false;
    x->bytes = bigger;
    x->capacity += 65536;
  }
  for (;;) {
    const ssize_t got = read(x->from, x->bytes + x->n_bytes, x->capacity - x->n_bytes - 1);
    if (got < 0 && errno == EINTR) continue;
    if (got > 0) x->n_bytes += (size_t)got;
    return got > 0;
  }
}

fa_exec_answer fa_exec_receive(fa_exec_lines *x, double seconds, char **line) {
  const double deadline = fa_exec_now() + seconds;
  size_t seen = 0;
  x->n_bytes -= x->n_taken;
  if (x->n_bytes) memmove(x->bytes, x->bytes + x->n_taken, x->n_bytes);
  x->n_taken = 0;
  for (;;) {
    char *end = x->n_bytes > seen ? memchr(x->bytes + seen, '\n', x->n_bytes - seen) : NULL;
    *line = x->bytes;
    if (end) {
      *end = 0;
      x->n_taken = (size_t)(end - x->bytes) + 1;
      return FA_EXEC_LINE;
    }
    seen = x->n_bytes;
    if (seen) x->bytes[seen] = 0;
    if (seen > FA_EXEC_MAX_LINE) return FA_EXEC_TOO_LONG;
    if (seconds > 0) {
      struct pollfd fd = {.fd = x->from, .events = POLLIN};
      const double left = deadline - fa_exec_now();
      if (left <= 0) return FA_EXEC_LATE;
      if (poll(&fd, 1, (int)(left * 1e3) + 1) <= 0) continue; /* or interrupted by a signal */
    }
    if (read_more(x)) continue;
    static char nothing[1];
    *line = seen ? x->bytes : nothing;
    return FA_EXEC_ENDED;
  }
}

void fa_exec_lines_free(fa_exec_lines *x) {
  free(x->bytes);
  *x = (fa_exec_lines){0};
}
