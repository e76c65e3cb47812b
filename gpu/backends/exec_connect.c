/* The backend connect:PATH: a process that is already running and listens on a Unix socket. */
#include "gpu/backends/exec_subject.h"
#include "gpu/backends/plugin_backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static fa_status open_socket(fa_exec_subject *x, fa_error *err) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(x->name) >= sizeof address.sun_path)
    return fa_fail(err, FA_ERR_INPUT, "%s: the path of a socket has at most %zu bytes", x->name,
                   sizeof address.sun_path - 1);
  strcpy(address.sun_path, x->name);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
    const fa_status status =
        fa_fail(err, FA_ERR_INPUT, "%s: nobody listens there: %s", x->name, strerror(errno));
    if (fd >= 0) close(fd);
    return status;
  }
  x->child.lines = (fa_exec_lines){.to = fd, .from = fd};
  x->lines = &x->child.lines;
  return FA_OK;
}

static void close_socket(fa_exec_subject *x, bool at_once, char *how, size_t how_size) {
  (void)at_once;
  close(x->lines->to);
  fa_exec_lines_free(x->lines);
  if (how) snprintf(how, how_size, "closed the connection");
}

static const fa_exec_reach reach = {.backend = "connect",
                                    .what = "the other side",
                                    .memory_only = true,
                                    .open = open_socket,
                                    .close = close_socket};

static fa_status connect_open(const char *arg, void **self, fa_error *err) {
  *self = NULL;
  if (!arg || !*arg) return fa_fail(err, FA_ERR_INPUT, "backend connect needs a socket's path: connect:PATH");
  return fa_exec_open(&reach, arg, NULL, NULL, self, err);
}

const fa_backend fa_backend_connect = FA_EXEC_BACKEND(
    "connect", "connect:PATH, a process of yours that listens on a Unix socket (docs/reference/protocol.md)",
    connect_open, NULL);
