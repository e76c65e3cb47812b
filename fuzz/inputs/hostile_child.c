#include "fuzz/inputs/hostile_child.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SCRIBBLE = 1, ENDLESS = 2, AND_MORE = 3, OFFSET_BYTES = 3 };

/* One child at a time. The judge waits while the child acts, so that they share all this without a lock. */
static struct child {
  const uint8_t *script;
  size_t size, at; /* what comes next */
  int end;         /* its own end of the connection */
  long long id;    /* of the last request */
  fa_exec_subject *subject;
  pthread_t thread;
} child;

/* ---- what it writes ---- */

static bool put(const void *bytes, size_t n) {
  const char *from = bytes;
  while (n > 0) {
    const ssize_t written = send(child.end, from, n, MSG_NOSIGNAL);
    if (written <= 0) return false;
    from += written, n -= (size_t)written;
  }
  return true;
}

static bool put_answer(const uint8_t *line, size_t n) {
  char id[24];
  const int digits = snprintf(id, sizeof id, "%lld", child.id);
  for (size_t at = 0, next; at < n; at = next) {
    for (next = at; next < n && line[next] != '@';) ++next;
    if (next > at && !put(line + at, next - at)) return false;
    if (next < n && (++next, !put(id, (size_t)digits))) return false;
  }
  return put("\n", 1);
}

/* In large pieces: each is a system call. */
static bool put_endlessly(const uint8_t *line, size_t n) {
  static char piece[1 << 16];
  for (size_t i = 0; n > 0 && i < sizeof piece; ++i) piece[i] = (char)line[i % n];
  for (size_t sent = 0; n > 0 && sent <= FA_EXEC_MAX_LINE; sent += sizeof piece)
    if (!put(piece, sizeof piece)) return false;
  return n > 0;
}

/* Three bytes of offset do not reach far into large regions, but into every part of small ones. */
static void scribble(const uint8_t *line, size_t n) {
  const fa_exec_memory *m = &child.subject->memory;
  if (!m->map || n < OFFSET_BYTES) return;
  size_t at = (size_t)line[0] << 16 | (size_t)line[1] << 8 | line[2];
  for (size_t i = OFFSET_BYTES; i < n; ++i, ++at) m->map[at % m->bytes] = (char)line[i];
}

/* Follows one line of the script. False: it is over, or nobody reads. */
static bool act(bool *more) {
  if (child.at >= child.size) return false;
  const uint8_t *line = child.script + child.at, *end = memchr(line, '\n', child.size - child.at);
  size_t n = end ? (size_t)(end - line) : child.size - child.at;
  child.at += n + 1;
  const int what = n > 0 ? line[0] : 0;
  *more = what == SCRIBBLE || what == AND_MORE;
  if (what == SCRIBBLE || what == ENDLESS || what == AND_MORE) ++line, --n;
  if (what == SCRIBBLE) return scribble(line, n), true;
  return what == ENDLESS ? put_endlessly(line, n) : put_answer(line, n);
}

/* ---- what it reads ---- */

/* Reads a request to its end, and its id, which is its last key. */
static bool hear(void) {
  char piece[4096], tail[65] = "";
  size_t kept = 0;
  for (;;) {
    const ssize_t n = read(child.end, piece, sizeof piece);
    if (n <= 0) return false;
    const size_t last = (size_t)n < sizeof tail - 1 ? (size_t)n : sizeof tail - 1;
    if (kept + last > sizeof tail - 1) {
      const size_t drop = kept + last - (sizeof tail - 1);
      memmove(tail, tail + drop, kept - drop);
      kept -= drop;
    }
    memcpy(tail + kept, piece + n - last, last);
    kept += last;
    tail[kept] = 0;
    if (piece[n - 1] == '\n') break;
  }
  const char *id = strstr(tail, "\"id\":");
  child.id = id ? strtoll(id + strlen("\"id\":"), NULL, 10) : 0;
  return true;
}

static void *live(void *unused) {
  (void)unused;
  for (bool more = false, alive = hear(); alive;) {
    alive = act(&more);
    if (alive && !more) alive = hear();
  }
  shutdown(child.end, SHUT_RDWR);
  return NULL;
}

/* ---- how it is reached ---- */

void fa_hostile_child_follow(const uint8_t *script, size_t size) {
  child = (struct child){.script = script, .size = size, .end = -1};
}

static fa_status start(fa_exec_subject *x, fa_error *err) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fa_fail(err, FA_ERR_MEMORY, "no connection");
  child.end = ends[1];
  child.subject = x;
  x->child.lines = (fa_exec_lines){.to = ends[0], .from = ends[0]};
  x->lines = &x->child.lines;
  if (pthread_create(&child.thread, NULL, live, NULL) == 0) return FA_OK;
  close(ends[0]), close(ends[1]);
  x->lines = NULL;
  return fa_fail(err, FA_ERR_MEMORY, "no thread");
}

static void stop(fa_exec_subject *x, bool at_once, char *how, size_t how_size) {
  (void)at_once;
  close(x->lines->to);
  pthread_join(child.thread, NULL);
  close(child.end);
  fa_exec_lines_free(x->lines);
  if (how) snprintf(how, how_size, "ended with status 0");
}

const fa_exec_reach fa_hostile_child_reach = {
    .backend = "exec", .what = "the child", .memory_only = true, .open = start, .close = stop};
