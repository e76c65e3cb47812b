#include "gpu/wall/printed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* In one write, so that lines of several processes do not mix. */
static void print(const fa_wall_printed *x, const char *text, size_t n) {
  char line[sizeof x->line + 128];
  const int length = snprintf(line, sizeof line, "candidate %.60s| %.*s\n", x->name, (int)n, text);
  if (write(STDERR_FILENO, line, (size_t)length) < 0) {} /* then nobody wants to read it */
}

static void end_line(fa_wall_printed *x) {
  print(x, x->line, x->n_line);
  x->n_line = 0;
}

static void take(fa_wall_printed *x, unsigned char c) {
  if (c == '\n') {
    end_line(x);
    return;
  }
  if (x->n_line + 8 > sizeof x->line) end_line(x);
  const bool plain = (c >= 32 && c < 127) || c == '\t';
  x->n_line += (size_t)snprintf(x->line + x->n_line, sizeof x->line - x->n_line, plain ? "%c" : "\\x%02x", c);
}

static void take_all(fa_wall_printed *x, const char *bytes, size_t n) {
  static const char cut[] = "(it printed more, which is dropped)";
  for (size_t i = 0; i < n && x->n_bytes <= FA_WALL_PRINTED_BYTES; ++i) {
    if (++x->n_bytes <= FA_WALL_PRINTED_BYTES) {
      take(x, (unsigned char)bytes[i]);
      continue;
    }
    if (x->n_line) end_line(x);
    print(x, cut, sizeof cut - 1);
  }
}

/* False: there is nothing now, or never will be. */
static bool read_some(fa_wall_printed *x) {
  char bytes[4096];
  const ssize_t got = read(x->from, bytes, sizeof bytes);
  if (got > 0) take_all(x, bytes, (size_t)got);
  if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
    close(x->from);
    x->from = -1;
  }
  return got > 0;
}

void fa_wall_printed_pass(fa_wall_printed *x) {
  read_some(x);
}

void fa_wall_printed_finish(fa_wall_printed *x) {
  if (x->from >= 0) fcntl(x->from, F_SETFL, O_NONBLOCK);
  while (x->from >= 0 && read_some(x)) {}
  if (x->n_line) end_line(x);
}
