#include "fuzz/one/turns.h"

#include "report/text/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

fa_process_slots fa_process_slots_make(int n) {
  return (fa_process_slots){.fd = memfd_create("fa-verify-turns", MFD_CLOEXEC), .n = n};
}

void fa_process_slots_free(fa_process_slots *t) {
  if (t->fd >= 0) close(t->fd);
  t->fd = -1;
}

/* Slot i is byte i of the file. False: errno says why; EAGAIN or EACCES: another process has it. */
static bool set_lock(const fa_process_slots *t, int i, short type) {
  struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = i, .l_len = 1};
  int code;
  do code = fcntl(t->fd, F_SETLK, &lock);
  while (code != 0 && errno == EINTR);
  return code == 0;
}

int fa_process_slots_acquire(const fa_process_slots *t, double patience_s) {
  const struct timespec pause = {.tv_nsec = 2000000};
  const double end = fa_seconds_now() + patience_s;
  if (t->fd < 0) return -1;
  for (;;) {
    for (int i = 0; i < t->n; ++i) {
      if (set_lock(t, i, F_WRLCK)) return i;
      if (errno != EAGAIN && errno != EACCES) return -1; /* no locks here, so no waiting */
    }
    if (fa_seconds_now() >= end) return -1;
    nanosleep(&pause, NULL); /* F_SETLKW has no time limit */
  }
}

void fa_process_slots_release(const fa_process_slots *t, int turn) {
  if (turn >= 0) set_lock(t, turn, F_UNLCK);
}
